// The token of this server, which the page shows with all that it asks.
//
// It comes behind the # of the address that "sonde url" or "sonde serve" printed, which a browser
// sends to nobody, and is kept for this tab and this origin, port included. A cookie would go to
// every port of the host, whoever listens there. A tab that has no token asks the other tabs of the
// same page, so that a link may open in a new one.

const KEY = 'sonde-token ' + location.pathname;  // a proxy has several servers at one origin
const HEADER = 'Sonde-Token';
const WAIT_MS = 300;  // for the other tabs

const channel = new BroadcastChannel(KEY);
let token = '';
try {
  token = sessionStorage.getItem(KEY) ?? '';
} catch (error) {
  // The browser keeps nothing: as long as this page is not loaded anew.
}

function keep(given) {
  token = given;
  try {
    sessionStorage.setItem(KEY, given);
  } catch (error) {
    // As above.
  }
}

// Takes the token out of the address: #token=TOKEN, with the page behind it as in
// #token=TOKEN/job/4711.0. Whether there was one.
export function takeToken() {
  const found = location.hash.match(/^#token=([^/]+)(\/.*)?$/);
  if (!found) return false;
  keep(found[1]);
  channel.postMessage({given: token});
  history.replaceState(null, '', '#' + (found[2] ?? '/'));
  return true;
}

let asking = null;
let told = () => {};

// Ends when another tab has told a token that is not the one known here, or when none has.
function askOtherTabs() {
  asking ??= new Promise((resolve) => {
    told = resolve;
    setTimeout(resolve, WAIT_MS);
    channel.postMessage({asked: true});
  }).then(() => { asking = null; });
  return asking;
}

channel.addEventListener('message', ({data}) => {
  if (data.asked && token) channel.postMessage({known: token});
  // What a tab knows is for who asks; what it was given is newer than what the others know.
  const other = data.given ?? (asking && data.known);
  if (!other || other === token) return;
  keep(other);
  told();
});

const shown = (options) => token ? {...options, headers: {...options.headers, [HEADER]: token}} : options;

// fetch, for a path of this server.
export async function ask(path, options = {}) {
  const tried = token;
  const response = await fetch('.' + path, shown(options));
  if (response.status !== 401) return response;
  if (token === tried) await askOtherTabs();
  return token === tried ? response : fetch('.' + path, shown(options));
}
