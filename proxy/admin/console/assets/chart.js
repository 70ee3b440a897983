// Charts over time, drawn as SVG: lines or a stack of areas, a reading under the pointer, and the same numbers as a table.
import { attr, fresh, h, keyed, put, s, show } from './dom.js';
import { clock, dash, when } from './format.js';
import { t } from './i18n.js';
import { scroller } from './parts.js';

const height = 176, left = 68, right = 12, above = 10, below = 24;

// steps are the values at which lines are drawn: 0 and at most four more, in round steps of the given base.
export function steps(most, base) {
  if (!(most > 0)) return [0, 1];
  let unit = 1;
  while (base > 10 && most / unit >= base) unit *= base;
  const rough = most / unit / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = ([1, 2, 5, 10].find(one => one * power >= rough) ?? 10) * power * unit;
  if (base === 10) step = Math.max(1, step);
  const marks = [0];
  while (marks.at(-1) < most) marks.push(marks.at(-1) + step);
  return marks;
}

// path draws one line through [x, y] points; null breaks it.
function path(points) {
  let text = '', pen = 'M';
  for (const point of points) {
    if (!point) {
      pen = 'M';
      continue;
    }
    text += `${pen}${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
    pen = 'L';
  }
  return text;
}

// runs are the stretches without a gap.
function runs(points) {
  const found = [[]];
  for (const point of points) {
    if (point) found.at(-1).push(point);
    else if (found.at(-1).length) found.push([]);
  }
  return found.filter(one => one.length);
}

function area(points, floor) {
  return runs(points.map((point, i) => point && [point, floor[i]])).map(run => {
    const upper = run.map(([point]) => point), lower = run.map(([, point]) => point).reverse();
    return `${path([...upper, ...lower])}Z`;
  }).join('');
}

// chart returns {node, update}. series are {key, label}; their colour is that of the class "line-KEY". format writes a value, base is 1024 for bytes.
export function chart({ title, series, stacked = false, format, base = 10, level = 'h2' }) {
  const name = fresh('chart');
  const grid = s('g', { class: 'grid' }), marks = s('g', { class: 'marks' }), drawn = s('g', {}), cross = s('line', { class: 'cross', y1: above, y2: height - below });
  const art = s('svg', { role: 'img', 'aria-label': title, hidden: true, height, preserveAspectRatio: 'none' }, grid, drawn, marks, cross);
  const reading = h('p', { class: 'reading', 'aria-hidden': 'true' });
  const legend = h('ul', { class: 'legend' });
  const body = h('tbody');
  const table = h('table', {}, h('caption', { class: 'said' }, title),
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, t('chart.time')), series.map(one => h('th', { scope: 'col', class: 'n' }, one.label)))), body);
  const details = h('details', { hidden: true }, h('summary', {}, t('chart.table')), scroller(title, table));
  const empty = h('p', { class: 'soft', hidden: true }, t('chart.empty'));
  const node = h('section', { class: 'card chart', 'aria-labelledby': name }, h(level, { id: name }, title), reading, legend, h('div', { class: 'art' }, art, empty), details);
  let data = null, width = 600;

  const last = one => one.findLast(n => n !== null) ?? null;
  const times = () => data.values[0].map((_, i) => new Date(data.until.getTime() - (data.values[0].length - 1 - i) * data.step * 1000));

  function draw() {
    if (!data) return;
    const { values } = data, count = values[0].length, inner = width - left - right, tall = height - above - below;
    const tops = values.map((one, at) => one.map((n, i) => n === null ? null : stacked ? values.slice(0, at + 1).reduce((sum, each) => sum + (each[i] ?? 0), 0) : n));
    const most = Math.max(0, ...tops.flat().filter(n => n !== null));
    const levels = steps(most, base), ceiling = levels.at(-1);
    const x = i => left + (count > 1 ? i / (count - 1) : 1) * inner, y = n => above + tall * (1 - n / ceiling);
    attr(art, 'viewBox', `0 0 ${width} ${height}`);
    attr(art, 'width', width);
    lines(levels, ceiling, y);
    clocks(count, x);
    const points = tops.map(one => one.map((n, i) => n === null ? null : [x(i), y(n)]));
    const floor = points[0].map((_, i) => [x(i), y(0)]);
    keyed(drawn, series.map((one, at) => ({ ...one, at })), one => one.key, one => s('g', { class: `line-${one.key}` }, s('path', { class: 'area' }), s('path', { class: 'line' })), (group, one) => {
      attr(group.firstChild, 'd', stacked ? area(points[one.at], one.at ? points[one.at - 1].map((p, i) => p ?? floor[i]) : floor) : one.at === 0 ? area(points[0], floor) : '');
      attr(group.lastChild, 'd', path(points[one.at]));
    });
    attr(art, 'aria-label', spoken());
  }

  function lines(levels, ceiling, y) {
    keyed(grid, levels.map((n, i) => ({ n, i })), one => one.i, () => s('g', {}, s('line', {}), s('text', { class: 'tick', 'text-anchor': 'end' })), (group, { n }) => {
      const [line, text] = group.children, at = y(n).toFixed(1);
      attr(line, 'x1', left);
      attr(line, 'x2', width - right);
      attr(line, 'y1', at);
      attr(line, 'y2', at);
      attr(text, 'x', left - 8);
      attr(text, 'y', +at + 4);
      put(text, n === 0 ? '0' : format(n, ceiling));
    });
  }

  function clocks(count, x) {
    const all = times(), wanted = Math.max(2, Math.min(7, Math.floor(width / 110)));
    const chosen = count < 2 ? [] : Array.from({ length: wanted }, (_, i) => Math.round(i * (count - 1) / (wanted - 1)));
    keyed(marks, chosen.map((at, i) => ({ at, i, end: i === wanted - 1 })), one => one.i, () => s('text', { class: 'tick', y: height - 7 }), (text, one) => {
      attr(text, 'x', x(one.at).toFixed(1));
      attr(text, 'text-anchor', one.i === 0 ? 'start' : one.end ? 'end' : 'middle');
      put(text, clock(all[one.at]));
    });
  }

  function spoken() {
    const parts = series.map((one, at) => {
      const known = data.values[at].filter(n => n !== null);
      return known.length ? t('chart.spoken', { name: one.label, now: format(last(data.values[at])), low: format(Math.min(...known)), high: format(Math.max(...known)) }) : null;
    }).filter(Boolean);
    return `${title}. ${parts.join(' ') || t('chart.empty')}`;
  }

  function legends() {
    keyed(legend, series.map((one, at) => ({ ...one, now: last(data.values[at]) })), one => one.key,
      one => h('li', {}, h('span', { class: `swatch line-${one.key}`, 'aria-hidden': 'true' }), `${one.label} `, h('b', {})),
      (item, one) => put(item.lastChild, one.now === null ? dash : format(one.now)));
  }

  // The table has at most thirteen rows: the span in twelve equal parts.
  function rows() {
    if (!details.open || !data) return;
    const all = times(), count = all.length, every = Math.max(1, Math.ceil((count - 1) / 12));
    const chosen = all.map((at, i) => ({ at, i })).filter(one => (count - 1 - one.i) % every === 0).reverse();
    keyed(body, chosen.map((one, row) => ({ ...one, row })), one => one.row, () => h('tr', {}, h('th', { scope: 'row' }), series.map(() => h('td', { class: 'n' }))), (row, one) => {
      put(row.firstChild, when(one.at));
      series.forEach((_, at) => put(row.children[at + 1], data.values[at][one.i] === null ? dash : format(data.values[at][one.i])));
    });
  }

  function point(event) {
    if (!data) return;
    const box = art.getBoundingClientRect(), count = data.values[0].length;
    const share = (event.clientX - box.left - left) / (box.width - left - right), i = Math.round(share * (count - 1));
    if (share < -0.02 || share > 1.02 || count < 2) return unpoint();
    const at = Math.min(count - 1, Math.max(0, i)), x = left + at / (count - 1) * (width - left - right);
    attr(cross, 'x1', x);
    attr(cross, 'x2', x);
    attr(art, 'data-pointed', true);
    put(reading, `${when(times()[at])} · ${series.map((one, k) => `${one.label} ${data.values[k][at] === null ? dash : format(data.values[k][at])}`).join(' · ')}`);
  }

  function unpoint() {
    attr(art, 'data-pointed', null);
    put(reading, '');
  }

  art.addEventListener('pointermove', point);
  art.addEventListener('pointerleave', unpoint);
  details.addEventListener('toggle', rows);
  const size = new ResizeObserver(([entry]) => {
    width = Math.max(220, Math.round(entry.contentRect.width));
    draw();
  });
  size.observe(art.parentNode);

  return {
    node,
    // update takes {step, until, values}: seconds between samples, the moment of the last, an array of numbers or null for each series.
    update(next) {
      const known = next.values.some(one => one.some(n => n !== null));
      show(empty, !known);
      art.toggleAttribute('hidden', !known);
      show(legend, known);
      show(details, known);
      if (!known) return;
      data = next;
      draw();
      legends();
      rows();
    },
    stop: () => size.disconnect(),
  };
}
