// The queue at a glance: slots, who waits, the forecast, rates over time.
import { call } from './api.js';
import { chart } from './chart.js';
import { attr, h, keyed, put, say } from './dom.js';
import { bytes, number, percent, rate, scale, span, when } from './format.js';
import { count, has, t } from './i18n.js';
import { live } from './live.js';
import { classes, moment, notice, scroller, select, staleness } from './parts.js';

const counters = ['queued', 'rejoined', 'started', 'completed', 'refused', 'idle', 'noShow', 'cancelled', 'yielded', 'kicked', 'moved', 'paused', 'resumed',
  'rejectedNew', 'wouldWait', 'overQuota'];

const word = (kind, code) => has(`${kind}.${code}`) ? t(`${kind}.${code}`) : code;

let minutes = '60';

function tile(title) {
  const main = h('dd', { class: 'big' }, '–'), under = h('dd', { class: 'soft' });
  return { node: h('div', { class: 'tile' }, h('dt', {}, title), main, under), main, under };
}

// slotBar draws the slots as one bar: taken, free, and which of the free are kept for interactive.
function slotBar() {
  const taken = h('span', { class: 'taken' }), kept = h('span', { class: 'kept' });
  const node = h('div', { class: 'slots', 'aria-hidden': 'true' }, taken, kept);
  return {
    node,
    set({ open, reserve, active }) {
      const share = n => `${open > 0 ? Math.min(100, 100 * n / open) : 0}%`;
      taken.style.inlineSize = share(active);
      kept.style.inlineSize = share(Math.min(reserve, Math.max(0, open - active)));
    },
  };
}

function tiles() {
  const slots = tile(t('queue.slots')), bar = slotBar(), waiting = tile(t('queue.waiting')), oldest = tile(t('queue.oldest')), empty = tile(t('queue.empty')),
    speed = tile(t('queue.rate')), kept = tile(t('queue.promises'));
  slots.node.append(h('dd', {}, bar.node));
  const node = h('dl', { class: 'tiles' }, [slots, waiting, oldest, empty, speed, kept].map(one => one.node));
  return {
    node,
    set(q) {
      const { open, configured, elastic, elasticLimit, reserve, active } = q.slots;
      put(slots.main, t('queue.slotsUsed', { active: number(active), open: number(open) }));
      put(slots.under, [elastic > 0 || elasticLimit > configured ? t('queue.elastic', { configured: number(configured), elastic: number(elastic), limit: number(elasticLimit) })
        : t('queue.configured', { configured: number(configured) }), reserve > 0 ? t('queue.reserve', { n: number(reserve) }) : ''].filter(Boolean).join(' · '));
      bar.set(q.slots);
      put(waiting.main, number(q.waiting));
      put(waiting.under, [q.waitingBytes > 0 ? bytes(q.waitingBytes) : '', q.held > 0 ? t('queue.held', { n: number(q.held) }) : '', q.fed > 0 ? t('queue.fed', { n: number(q.fed) }) : '',
        q.pausedByOperator > 0 ? t('queue.paused', { n: number(q.pausedByOperator) }) : ''].filter(Boolean).join(' · ') || t('queue.nobody'));
      put(oldest.main, q.waiting > 0 ? span(q.oldestWaitSeconds) : '–');
      put(oldest.under, q.remembered > 0 ? count('queue.remembered', q.remembered, number(q.remembered)) : t('queue.noneRemembered'));
      put(empty.main, q.emptyInSeconds === null ? t('queue.unknown') : q.emptyInSeconds === 0 ? t('queue.now') : span(q.emptyInSeconds));
      put(empty.under, q.emptyInSeconds === null ? t('queue.noForecast') : q.emptyInSeconds === 0 ? t('queue.isEmpty') : t('queue.emptyAt', { at: when(q.emptyAt) }));
      put(speed.main, rate(q.rateBytesPerSecond));
      put(speed.under, [q.bandBytesPerSecond > 0 ? t('queue.band', { rate: rate(q.bandBytesPerSecond), share: percent(q.rateBytesPerSecond / q.bandBytesPerSecond) }) : t('queue.noBand'),
        q.activeRemainingBytes > 0 ? t('queue.remaining', { bytes: bytes(q.activeRemainingBytes) }) : ''].filter(Boolean).join(' · '));
      const { judged, within, held } = q.promises;
      put(kept.main, judged > 0 ? percent(held / judged) : '–');
      put(kept.under, judged > 0 ? t('queue.judged', { within: percent(within / judged), n: number(judged) }) : t('queue.unjudged'));
    },
  };
}

function windowText({ open, outsideShare, changesAt }) {
  const at = changesAt ? when(changesAt) : '';
  if (open) return at ? t('window.closes', { at }) : t('window.always');
  const share = outsideShare > 0 ? ` · ${t('window.share', { share: percent(outsideShare) })}` : '';
  return (at ? t('window.opens', { at }) : t('window.closed')) + share;
}

function classTable() {
  const body = h('tbody'), heads = ['class', 'active', 'waiting', 'oldest', 'bytes', 'window'];
  const table = h('table', { class: 'classes' }, h('caption', { class: 'said' }, t('queue.byClass')),
    h('thead', {}, h('tr', {}, heads.map((one, i) => h('th', { scope: 'col', class: i > 0 && i < 5 ? 'n' : null }, t(`table.${one}`))))), body);
  return {
    node: h('section', { class: 'card' }, h('h2', {}, t('queue.byClass')), scroller(t('queue.byClass'), table)),
    set(q) {
      keyed(body, classes.filter(one => q.byClass[one]).map(one => ({ one, ...q.byClass[one] })), row => row.one,
        row => h('tr', {}, h('th', { scope: 'row' }, h('span', { class: `swatch line-${row.one}`, 'aria-hidden': 'true' }), h('a', { href: `#/sessions?class=${row.one}` }, t(`class.${row.one}`))),
          h('td', { class: 'n' }), h('td', { class: 'n' }), h('td', { class: 'n' }), h('td', { class: 'n' }), h('td', {})),
        (node, row) => {
          const cells = node.children;
          put(cells[1], number(row.active));
          put(cells[2], number(row.waiting));
          put(cells[3], row.waiting > 0 ? span(row.oldestWaitSeconds) : '–');
          put(cells[4], row.waitingBytes > 0 ? bytes(row.waitingBytes) : '–');
          put(cells[5], windowText(row.window));
          attr(cells[5], 'class', row.window.open ? null : 'strong');
        });
    },
  };
}

function totals() {
  const list = h('dl', { class: 'counts' });
  return {
    node: h('section', { class: 'card' }, h('h2', {}, t('queue.totals')), list),
    set(q) {
      keyed(list, counters.map(one => ({ one, n: q.counts[one] ?? 0 })), row => row.one,
        row => h('div', { title: t(`count.${row.one}.hint`) }, h('dt', {}, t(`count.${row.one}`)), h('dd', {})), (node, row) => put(node.lastChild, number(row.n)));
    },
  };
}

function charts(now) {
  const bits = chart({ title: t('chart.rates'), base: 1024, format: (n, top) => rate(n, top === undefined ? undefined : scale(top)),
    series: [{ key: 'down', label: t('chart.down') }, { key: 'up', label: t('chart.up') }], level: 'h3' });
  const waiting = chart({ title: t('chart.waiting'), stacked: true, format: n => number(n), series: classes.map(one => ({ key: one, label: t(`class.${one}`) })).reverse(), level: 'h3' });
  const slots = chart({ title: t('chart.slots'), format: n => number(n), series: [{ key: 'active', label: t('chart.active') }, { key: 'open', label: t('chart.open') }], level: 'h3' });
  const pick = select(t('chart.span'), ['15', '60', '180', '360'].map(one => [one, span(one * 60)]), minutes, chosen => {
    minutes = chosen;
    now();
  });
  return {
    node: h('section', { class: 'history', 'aria-labelledby': 'history' }, h('div', { class: 'row' }, h('h2', { id: 'history' }, t('chart.history')), pick.node),
      h('div', { class: 'charts' }, bits.node, waiting.node, slots.node)),
    set(d) {
      const until = new Date(d.until), step = d.stepSeconds;
      // A process that is younger than the span has its first sample at the left edge, not its first hour in the last pixels; five minutes are shown at least.
      const known = d.slots.findIndex(n => n !== null), from = known < 0 ? 0 : Math.max(0, Math.min(known, d.slots.length - Math.ceil(300 / step)));
      const cut = series => series.map(one => one.slice(from));
      bits.update({ step, until, values: cut([d.bytesPerSecond, d.uploadBytesPerSecond]) });
      waiting.update({ step, until, values: cut([...classes].reverse().map(one => d.waiting[one])) });
      slots.update({ step, until, values: cut([d.active, d.slots]) });
    },
    stop: () => [bits, waiting, slots].forEach(one => one.stop()),
  };
}

export function queueView(main, report) {
  const old = staleness(), mode = notice('warn'), gate = notice('bad'), drain = notice('bad'), shared = notice('plain');
  const sub = h('p', { class: 'sub' }), gateLine = h('span', { class: 'badge' });
  const figures = tiles(), table = classTable(), sums = totals();
  let told = null, due = 0;
  const graphs = charts(() => {
    due = 0;
    feed.now();
  });
  main.append(h('div', { class: 'head' }, h('h1', {}, t('nav.queue')), sub, gateLine), old.node, drain.node, gate.node, mode.node, shared.node,
    figures.node, table.node, graphs.node, sums.node);

  // news is what a screen reader is told: rarely, and only what changes the picture.
  function news(q) {
    const now = `${q.mode} ${q.gate.open} ${q.draining}`;
    if (told !== null && told !== now) {
      say(q.draining ? t('queue.draining') : !q.gate.open ? t('queue.gateClosed', { reason: word('gate', q.gate.reason) }) : t('queue.modeNow', { mode: word('mode', q.mode) }));
    }
    told = now;
  }

  function set([q, history]) {
    put(sub, [t('queue.strategyIs', { strategy: word('strategy', q.strategy) }), t('queue.revision', { n: number(q.settingsRevision) }), t('queue.uptime', { span: span(q.uptimeSeconds) }),
      t('queue.tick', { n: number(q.tickMilliseconds, 2) }), q.version].filter(Boolean).join(' · '));
    put(gateLine, t('queue.gate', { state: q.gate.open ? t('gate.open') : t('gate.closed'), reason: word('gate', q.gate.reason) }));
    attr(gateLine, 'data-kind', q.gate.open ? 'good' : 'bad');
    drain.set(q.draining ? t('queue.draining') : '');
    gate.set(q.gate.open ? '' : t('queue.gateClosed', { reason: word('gate', q.gate.reason) }));
    mode.set(q.mode === 'normal' ? '' : `${t('queue.modeNow', { mode: word('mode', q.mode) })} ${word('modeHint', q.mode)}`);
    shared.set(q.admission === 'sessions' ? '' : t('queue.shared'));
    figures.set(q);
    table.set(q);
    sums.set(q);
    news(q);
    if (history) graphs.set(history);
  }

  // The history changes every five seconds; both questions stand and fall together, so that a view never mixes old and new.
  async function ask(signal) {
    const wanted = Date.now() >= due;
    const [q, history] = await Promise.all([call('queue', { signal }), wanted ? call('history', { query: { minutes }, signal }) : null]);
    if (history) {
      due = Date.now() + (history.stepSeconds || 5) * 1000 - 500;
    }
    return [q, history];
  }

  const feed = live({ ask, show: set, report });
  return {
    now: feed.now,
    fault: old.fault,
    stop() {
      feed.stop();
      graphs.stop();
    },
  };
}
