"""Which texts of a page are hard to read: those whose contrast to what is behind them is below 4.5, as WCAG
2.1 asks for in 1.4.3."""

CONTRAST = """
const parse = (text) => {
  const n = text.match(/[\\d.]+(e-?\\d+)?/g).map(Number);
  if (text.startsWith('color(')) return [n[0] * 255, n[1] * 255, n[2] * 255, n.length > 3 ? n[3] : 1];
  return [n[0], n[1], n[2], n.length > 3 ? n[3] : 1];
};
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
const light = (c) => {
  const [r, g, b] = c.slice(0, 3).map((v) => v / 255)
      .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (node) => {
  const layers = [];
  for (let at = node; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
  return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
};
const poor = [];
for (const node of document.querySelectorAll('body *')) {
  const own = [...node.childNodes].some((one) => one.nodeType === 3 && one.textContent.trim());
  const box = node.getBoundingClientRect();
  if (!own || box.width < 2 || box.height < 2 || node.closest(arguments[0])) continue;
  if (!node.checkVisibility()) continue;
  const below = behind(node);
  const [a, b] = [light(over(parse(getComputedStyle(node).color), below)), light(below)];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) poor.push(`${node.tagName}.${node.className} "${node.textContent.slice(0, 30)}" ${ratio.toFixed(2)}`);
}
return poor;"""


def faint(browser, left_out):
    """Of all texts that can be seen; `left_out`: a selector of what is not meant to be read."""
    return browser.execute_script(CONTRAST, left_out)
