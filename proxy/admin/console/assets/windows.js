// The hours of the classes as a week, in the zone of each class and in the reader's own.
import { call } from './api.js';
import { attr, h, keyed, put, s, show } from './dom.js';
import { clock, dayOf, full, span, weekday } from './format.js';
import { t } from './i18n.js';
import { live } from './live.js';
import { hours } from './model.js';
import { classes, select, staleness } from './parts.js';
import { cut, known, monday, openings, own, wall } from './zone.js';

const day = 86400000, line = 22, left = 92, above = 18;

// Which clock the weeks are drawn by stands as long as the page is open.
let by = 'class';

// range is a stretch of a day in words.
const range = ([from, to]) => `${minute(from)}–${minute(to)}`;

const minute = n => n >= 1440 ? '24:00' : clock(new Date(n * 60000), 'UTC');

// week draws seven days of twenty-four hours.
function week() {
  const hoursAt = s('g', {}), daysAt = s('g', {}), open = s('g', {}), now = s('line', { class: 'now' });
  const art = s('svg', { class: 'week', role: 'img' }, hoursAt, daysAt, open, now);
  let width = 600, last = null;
  const x = n => left + n / 1440 * (width - left - 10), y = i => above + i * line;

  function draw() {
    if (!last) return;
    const { days, start, at, label } = last;
    attr(art, 'viewBox', `0 0 ${width} ${above + 7 * line + 4}`);
    attr(art, 'width', width);
    attr(art, 'height', above + 7 * line + 4);
    attr(art, 'aria-label', label);
    const every = width > 560 ? 3 : 6;
    keyed(hoursAt, Array.from({ length: 24 / every + 1 }, (_, i) => i * every), n => n, () => s('g', {}, s('line', { class: 'hour' }), s('text', { class: 'tick', y: 11 })), (group, n) => {
      const [rule, text] = group.children;
      for (const [name, where] of [['x1', x(n * 60)], ['x2', x(n * 60)], ['y1', above], ['y2', above + 7 * line]]) attr(rule, name, where);
      attr(text, 'x', x(n * 60));
      attr(text, 'text-anchor', n === 24 ? 'end' : 'middle');
      put(text, n === 24 ? '24' : String(n).padStart(2, '0'));
    });
    keyed(daysAt, days.map((_, i) => i), i => i, () => s('g', {}, s('rect', { class: 'shut', rx: 2 }), s('text', { class: 'tick' })), (group, i) => {
      const [rect, text] = group.children;
      for (const [name, where] of [['x', x(0)], ['y', y(i) + 3], ['width', x(1440) - x(0)], ['height', line - 6]]) attr(rect, name, where);
      attr(text, 'x', 0);
      attr(text, 'y', y(i) + 15);
      put(text, dayOf(new Date(start + i * day), 'UTC'));
    });
    const bars = days.flatMap((stretches, i) => stretches.map(([from, to]) => ({ i, from, to })));
    keyed(open, bars.map((one, at) => ({ ...one, at })), one => one.at, () => s('rect', { class: 'open', rx: 2 }), (rect, one) => {
      for (const [name, where] of [['x', x(one.from)], ['y', y(one.i) + 3], ['width', Math.max(1, x(one.to) - x(one.from))], ['height', line - 6]]) attr(rect, name, where);
    });
    const today = Math.floor((at - start) / day), into = (at - start - today * day) / 60000;
    now.toggleAttribute('hidden', today < 0 || today > 6);
    for (const [name, where] of [['x1', x(into)], ['x2', x(into)], ['y1', y(today) + 1], ['y2', y(today) + line - 1]]) attr(now, name, where);
  }

  const node = h('div', { class: 'art' }, art);
  const size = new ResizeObserver(([entry]) => {
    width = Math.max(240, Math.round(entry.contentRect.width));
    draw();
  });
  size.observe(node);
  return {
    node,
    set(next) {
      last = next;
      draw();
    },
    stop: () => size.disconnect(),
  };
}

// card is one class: its state, its week and its hours in words.
function card(name) {
  const head = `hours-${name}`, state = h('span', { class: 'badge' }), next = h('p', {}), rules = h('p', { class: 'soft' }), zone = h('p', { class: 'soft' }), art = week(), list = h('dl', { class: 'hours' });
  const details = h('details', {}, h('summary', {}, t('chart.table')), list);
  const node = h('section', { class: `card line-${name}`, 'aria-labelledby': head }, h('div', { class: 'row' }, h('h2', { id: head }, h('span', { class: `swatch line-${name}`, 'aria-hidden': 'true' }), t(`class.${name}`)), state),
    next, rules, zone, art.node, details);

  function calendar(window) {
    const at = Date.now(), shownBy = by === 'class' && known(window.zone || 'UTC') ? window.zone || 'UTC' : own();
    const start = monday(at, shownBy), days = cut(openings(window, at), start, shownBy);
    put(zone, t('windows.drawnBy', { zone: shownBy }));
    const words = days.map((stretches, i) => `${weekday(i)} ${stretches.map(range).join(', ') || t('windows.shut')}`).join('; ');
    art.set({ days, start, at: wall(at, shownBy), label: t('windows.spoken', { class: t(`class.${name}`), zone: shownBy, hours: words }) });
    keyed(list, days.map((stretches, i) => ({ stretches, i })), one => one.i, () => h('div', {}, h('dt', {}), h('dd', {})), (row, one) => {
      put(row.firstChild, dayOf(new Date(start + one.i * day), 'UTC'));
      put(row.lastChild, one.stretches.map(range).join(', ') || t('windows.shut'));
    });
  }

  return {
    node,
    set(window, now) {
      const drawable = window && known(window.zone || 'UTC');
      const open = now ? now.open : !window;
      put(state, t(open ? 'window.open' : 'window.shut'));
      attr(state, 'data-kind', open ? 'good' : 'pending');
      put(rules, hours(window));
      const changes = now?.changesAt ? new Date(now.changesAt) : null;
      put(next, changes ? t(open ? 'windows.closesAt' : 'windows.opensAt', { at: full(changes), in: span((changes - Date.now()) / 1000) }) : window ? t('windows.noChange') : '');
      show(next, Boolean(changes || window));
      for (const one of [zone, art.node, details]) show(one, Boolean(drawable));
      show(rules, Boolean(window));
      if (drawable) calendar(window);
      else if (!window) {
        put(rules, t('window.always'));
        show(rules, true);
      }
    },
    stop: art.stop,
  };
}

export function windowsView(main, report) {
  const old = staleness(), cards = Object.fromEntries(classes.map(name => [name, card(name)]));
  let last = null;
  const pick = select(t('windows.by'), [['class', t('windows.byClass')], ['own', t('windows.byOwn', { zone: own() })]], by, chosen => {
    by = chosen;
    if (last) set(last);
  });
  main.append(h('div', { class: 'head' }, h('h1', {}, t('nav.windows')), h('p', { class: 'sub' }, t('windows.what'), ' ', h('a', { href: '#/settings' }, t('windows.edit')))), old.node,
    h('div', { class: 'filters' }, pick.node), h('div', { class: 'weeks' }, classes.map(name => cards[name].node)));

  function set(answers) {
    last = answers;
    const [settings, queue] = answers;
    for (const name of classes) cards[name].set(settings.effective.windows?.[name], queue.byClass[name]?.window);
  }

  const feed = live({ ask: signal => Promise.all([call('settings', { signal }), call('queue', { signal })]), show: set, report });
  return {
    now: feed.now,
    fault: old.fault,
    stop() {
      feed.stop();
      classes.forEach(name => cards[name].stop());
    },
  };
}
