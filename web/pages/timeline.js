// The phases of a step one below the other, its remarks below them, and all remarks in words.

import {element, plural, renew, scrolled} from './dom.js';
import {ownerText} from './metrics.js';
import {seconds} from './numbers.js';
import {remarkLine} from './moments.js';
import {hideTip, showTip} from './tip.js';
import {clock} from './when.js';

const OPEN_REMARKS = 8;  // so many are listed without being asked

export class Timeline {
  constructor() {
    this.rows = element('div', {class: 'lanes'});
    this.remarks = element('div');
    this.axis = element('div', {class: 'lane axis'});
    this.list = element('details', {class: 'more'});
    this.section = element('section', {'aria-label': 'Phases and remarks'},
        element('h2', {}, 'Phases and remarks'),
        element('div', {class: 'frame timeline'}, this.rows,
                scrolled('Lanes', {class: 'lanes'}, this.remarks, this.axis)), this.list);
  }

  draw(moments) {
    this.section.hidden = moments.phases.length === 0 && moments.remarks.length === 0;
    if (this.section.hidden) return;
    this.moments = moments;
    const duration = moments.end - moments.begin;
    const rows = moments.phases.map((phase) => this.row(phase.name,
        `${plural(phase.began, 'time')}, ${seconds(phase.seconds)}, ` +
            `${(phase.seconds / duration * 100).toFixed(1)} %`,
        phase.intervals.map((one) => this.band(phase, one))));
    this.rows.replaceChildren(...rows);
    this.remarks.replaceChildren(moments.remarks.length
        ? this.row('Remarks', plural(moments.remarks.length, 'remark'),
                   this.separate(moments.remarks).map((group) => this.tick(group)))
        : '');
    this.axis.replaceChildren(element('div', {}),
        element('div', {class: 'track'}, ...[0, 0.25, 0.5, 0.75, 1].map((share) => {
          const mark = element('span', {}, seconds(duration * share));
          mark.style.left = share * 100 + '%';
          return mark;
        })));
    this.drawList(moments);
  }

  // The name, what it came to, and what happened when.
  row(name, text, marks) {
    return element('div', {class: 'lane'},
        element('div', {class: 'name', title: `${name}: ${text}`}, element('b', {}, name),
                element('span', {}, text)),
        element('div', {class: 'track'}, ...marks));
  }

  place(node, begin, end) {
    const {moments} = this;
    const share = (time) => Math.min(Math.max((time - moments.begin) /
                                              (moments.end - moments.begin || 1), 0), 1) * 100;
    node.style.left = share(begin) + '%';
    node.style.width = share(end) - share(begin) + '%';
    return node;
  }

  withTip(node, ...lines) {
    node.addEventListener('pointermove', (event) => showTip(node,
        element('div', {}, ...lines.map((line) => line())), event.clientX, event.clientY));
    node.addEventListener('pointerleave', () => hideTip(node));
    return node;
  }

  band(phase, interval) {
    const node = this.place(element('i', {class: interval.open ? 'open' : undefined}),
                            interval.begin, interval.end);
    node.style.background = phase.color;
    return this.withTip(node,
        () => element('div', {}, clock(interval.begin)),
        () => element('ul', {}, this.moments.phaseLine(phase, interval)),
        () => element('div', {}, `${interval.began} begun, ${interval.ended} ended, first by` +
                                 (ownerText(interval.by) || ' whom nobody knows')));
  }

  // Remarks so close that one mark has to do for them.
  separate(remarks) {
    const apart = (this.moments.end - this.moments.begin) / 400;
    const groups = [];
    for (const remark of remarks) {
      const last = groups[groups.length - 1];
      if (last && remark.time - last[0].time < apart) last.push(remark);
      else groups.push([remark]);
    }
    return groups;
  }

  tick(group) {
    const [first] = group;
    const node = this.place(element('em'), first.time, first.time);
    return this.withTip(node,
        () => element('div', {}, clock(first.time)),
        () => element('ul', {}, ...group.slice(0, 8).map(remarkLine),
                      ...(group.length > 8 ? [element('li', {}, `and ${group.length - 8} more`)] : [])));
  }

  drawList(moments) {
    this.list.hidden = moments.remarks.length === 0;
    const open = this.list.children.length ? this.list.open
                                           : moments.remarks.length <= OPEN_REMARKS;
    const rows = moments.remarks.map((remark) => element('tr', {},
        element('td', {class: 'number'}, seconds(remark.time - moments.begin)),
        element('td', {}, remark.text),
        element('td', {class: 'number'}, String(remark.count)),
        element('td', {class: 'owner'}, ownerText(remark.by).trim())));
    const head = [['After', 'number'], ['Remark', 'wide-cell'], ['Times', 'number'],
                  ['First by', '']];
    renew(
        this.list,
        element('summary', {}, plural(moments.remarks.length, 'remark')),
        scrolled('Table of remarks', {class: 'frame remarks'}, element('table', {},
            element('thead', {}, element('tr', {}, ...head.map(([name, kind]) =>
                element('th', {scope: 'col', class: kind}, name)))),
            element('tbody', {}, ...rows))));
    this.list.open = open;
  }
}
