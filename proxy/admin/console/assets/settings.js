// The live settings: a form of all fields, saved by compare-and-swap of the revision.
import { call } from './api.js';
import { conflict } from './conflict.js';
import { attr, fresh, h, put, say, show } from './dom.js';
import { bytesText, choice, flag, principals, quotas, text, weights, windows, zones } from './editors.js';
import { number, span, when } from './format.js';
import { count, t } from './i18n.js';
import { live } from './live.js';
import { changed, clone, describe, same, sections, whole } from './model.js';
import { moment, notice, staleness } from './parts.js';

// draft outlives the view: a look at the queue loses no change. base is the document that the changes were made on.
const draft = { base: null, overrides: null };

const dirty = () => draft.base ? changed(draft.base.overrides, draft.overrides) : [];

function adopt(doc) {
  draft.base = doc;
  draft.overrides = clone(doc.overrides);
}

// What the environment cannot set: without an override there are none.
const unset = { mode: 'normal', windows: {}, principals: {}, quotas: { bytesPerDay: 0, bytesPerWeek: 0, zone: 'UTC' } };

// environment is the value without an override, undefined while an override hides it and the server does not tell.
function environment(name) {
  const { environment: told, overrides, effective } = draft.base;
  if (told && name in told) return told[name];
  if (!(name in overrides)) return effective[name];
  return unset[name];
}

const editors = {
  choice: (one, options) => choice({ ...options, options: one.options }),
  whole: (one, options) => text({ ...options, parse: whole, numeric: true }),
  bytes: (one, options) => bytesText(options),
  flag: (one, options) => flag(options),
  weights: (one, options) => weights(options),
  windows: (one, options) => windows(options),
  principals: (one, options) => principals(options),
  quotas: (one, options) => quotas(options),
};

const single = new Set(['choice', 'whole', 'bytes', 'flag']);

// fieldRow is one field: its control, where its value comes from, and the way back to the environment.
function fieldRow(one, touched) {
  const { name, kind } = one, holder = h('div', { class: 'value' });
  const source = h('span', { class: 'badge' }), was = h('span', { class: 'soft' }), force = h('span', { class: 'soft' });
  const reset = h('button', { type: 'button', class: 'quiet', onclick: back }, t('settings.reset'), h('span', { class: 'said' }, ` ${t(`field.${name}`)}`));
  const hint = h('p', { class: 'soft hint', id: fresh('hint') }, t(`hint.${name}`));
  const node = h('div', { class: single.has(kind) ? 'field' : 'field wide', 'data-name': name, role: single.has(kind) ? null : 'group', 'aria-label': single.has(kind) ? null : t(`field.${name}`) },
    h('div', { class: 'what' }, single.has(kind) ? null : h('h3', {}, t(`field.${name}`)), holder, hint),
    h('div', { class: 'source' }, source, force, was, reset));

  // draw makes the control anew from the draft.
  function draw() {
    const value = name in draft.overrides ? draft.overrides[name] : environment(name);
    holder.replaceChildren(editors[kind](one, { label: t(`field.${name}`), value: clone(value), field: name, edit }));
    for (const control of holder.querySelectorAll('[data-field]')) describeBy(control, hint.id);
    tell();
  }

  function edit(value, control) {
    draft.overrides[name] = value;
    clear(control?.dataset.field ?? name);
    tell();
    touched();
  }

  function back() {
    delete draft.overrides[name];
    draw();
    touched();
    holder.querySelector('input, select, button')?.focus();
  }

  function clear(field) {
    const mark = node.querySelector(`[data-fault="${CSS.escape(field)}"]`);
    if (mark) unfault(mark);
  }

  function tell() {
    const mine = name in draft.overrides, pending = !same(draft.overrides[name], draft.base.overrides[name]), own = environment(name);
    put(source, t(pending ? mine ? 'settings.willChange' : 'settings.willReset' : mine ? 'settings.overridden' : 'settings.fromEnvironment'));
    attr(source, 'data-kind', pending ? 'pending' : mine ? 'mine' : 'plain');
    put(force, t('settings.inForce', { value: describe([name], draft.base.effective[name]) }));
    put(was, t('settings.environment', { value: own === undefined ? t('settings.hidden') : describe([name], own) }));
    show(reset, mine);
  }

  return { node, name, draw, tell };
}

function describeBy(control, id, away) {
  const ids = new Set((control.getAttribute('aria-describedby') || '').split(' ').filter(Boolean));
  if (away) ids.delete(id);
  else ids.add(id);
  attr(control, 'aria-describedby', [...ids].join(' ') || null);
}

function unfault(mark) {
  for (const control of document.querySelectorAll(`[aria-describedby~="${mark.id}"]`)) {
    describeBy(control, mark.id, true);
    attr(control, 'aria-invalid', null);
  }
  mark.remove();
}

// locate finds the control of a field, or the nearest that holds it: windows.bulk.open[0].from, then windows.bulk.open[0], and so on.
function locate(form, field) {
  for (let path = field; path;) {
    const control = form.querySelector(`[data-field="${CSS.escape(path)}"]`);
    if (control) return control;
    const cut = Math.max(path.lastIndexOf('.'), path.lastIndexOf('['));
    if (cut < 0) break;
    path = path.slice(0, cut);
  }
  return form.querySelector(`[data-name="${CSS.escape(field.split(/[.[]/)[0])}"] :is(input, select, button)`);
}

// fault puts what is wrong beside its control and returns the control, null for a field that this form does not have.
function fault(form, { field, rule, example }) {
  const control = locate(form, field);
  if (!control) return null;
  const sample = example === null || example === undefined ? '' : typeof example === 'string' ? example : JSON.stringify(example);
  const mark = h('p', { class: 'fault', id: fresh('fault'), 'data-fault': control.dataset.field ?? field }, h('span', {}, t('settings.refused')), ' ',
    h('span', { lang: 'en' }, rule + (sample ? ` (${sample})` : '')));
  (control.closest('[data-holder]') || control.parentNode).append(mark);
  attr(control, 'aria-invalid', 'true');
  describeBy(control, mark.id);
  return control;
}

// header says which revision this is, and what is wrong with the record.
function header() {
  const sub = h('p', { class: 'sub' }), by = h('span'), at = h('time'), since = h('span', {}, ' · ', at), problem = notice('bad'), memory = notice('warn'), newer = notice('warn');
  sub.append(by, since);
  return {
    sub, nodes: [problem.node, memory.node, newer.node],
    set(doc) {
      put(by, doc.revision === 0 ? t('settings.untouched') : t('settings.savedBy', { n: number(doc.revision), by: doc.updatedBy || '–' }));
      moment(at, doc.updatedAt);
      show(since, Boolean(doc.updatedAt));
      problem.set(doc.problem ? t('settings.problem', { why: doc.problem }) : '');
      memory.set(doc.persisted ? '' : t('settings.memory'));
    },
    newer: doc => newer.set(doc ? t('settings.newer', { n: number(doc.revision), by: doc.updatedBy || '–', at: when(doc.updatedAt) }) : ''),
  };
}

export function settingsView(main, report) {
  const old = staleness(), top = header(), rows = [];
  const form = h('form', { class: 'settings', novalidate: true, hidden: true });
  const left = h('span', { class: 'left' }), trouble = h('p', { class: 'fault', role: 'alert', hidden: true });
  const discard = h('button', { type: 'button', onclick: drop }, t('settings.discard')), save = h('button', { type: 'submit', class: 'primary' }, t('settings.save'));
  const bar = h('div', { class: 'savebar' }, trouble, left, h('div', { class: 'actions' }, discard, save));
  const dispute = h('div');
  main.append(h('div', { class: 'head' }, h('h1', {}, t('nav.settings')), top.sub), old.node, ...top.nodes, dispute, form);

  function build() {
    for (const [section, fields] of sections) {
      const known = fields.filter(one => one.name in draft.base.effective);
      if (!known.length) continue;
      const head = fresh('section');
      const made = known.map(one => fieldRow(one, touched));
      rows.push(...made);
      form.append(h('section', { class: 'card', 'aria-labelledby': head }, h('h2', { id: head }, t(`section.${section}`)), made.map(one => one.node)));
    }
    form.append(zones(), bar);
    show(form, true);
  }

  function redraw() {
    if (!rows.length) build();
    clearFaults();
    const at = document.activeElement?.dataset?.field;
    rows.forEach(one => one.draw());
    if (at) locate(form, at)?.focus();
    top.set(draft.base);
    touched();
  }

  function touched() {
    const n = dirty().length;
    put(left, n ? count('settings.unsaved', n, number(n)) : t('settings.clean'));
    attr(save, 'aria-disabled', n ? null : 'true');
    attr(discard, 'aria-disabled', n ? null : 'true');
    attr(bar, 'data-dirty', n > 0 || null);
  }

  function clearFaults() {
    form.querySelectorAll('[data-fault]').forEach(unfault);
    show(trouble, false);
  }

  function drop() {
    if (discard.getAttribute('aria-disabled')) return;
    adopt(draft.base);
    redraw();
    say(t('settings.discarded'));
    feed.now();
  }

  function blame(message) {
    put(trouble, message);
    show(trouble, true);
  }

  function refused(error) {
    let first = null;
    const strange = [];
    for (const one of error.faults) {
      const control = fault(form, one);
      if (!control) strange.push(`${one.field}: ${one.rule}`);
      else if (!first || control.compareDocumentPosition(first) & Node.DOCUMENT_POSITION_FOLLOWING) first = control;
    }
    blame([count('settings.faults', Math.max(1, error.faults.length), number(Math.max(1, error.faults.length))), error.faults.length ? strange.join('; ') : error.message].filter(Boolean).join(' '));
    (first ?? save).focus();
  }

  async function disputed() {
    const theirs = await call('settings', { interactive: true });
    const mine = clone(draft.overrides);
    show(form, false);
    top.newer(null);
    conflict(dispute, { base: draft.base, mine, theirs, take(overrides) {
      adopt(theirs);
      draft.overrides = overrides;
      settle();
      return submit();
    }, leave() {
      adopt(theirs);
      settle();
      save.focus();
    } });
  }

  function settle() {
    dispute.replaceChildren();
    show(form, true);
    redraw();
  }

  async function submit() {
    if (busy) return;
    if (!dirty().length) return save.focus();
    busy = true;
    attr(save, 'aria-busy', 'true');
    clearFaults();
    try {
      adopt(await call('save', { body: { expectedRevision: draft.base.revision, overrides: draft.overrides }, interactive: true }));
      redraw();
      top.newer(null);
      say(t('settings.saved', { n: number(draft.base.revision) }));
      put(left, t('settings.saved', { n: number(draft.base.revision) }));
      save.focus();
    } catch (error) {
      await failed(error);
    } finally {
      busy = false;
      attr(save, 'aria-busy', null);
    }
  }

  let busy = false;

  async function failed(error) {
    try {
      if (error.status === 400) return refused(error);
      if (error.status === 409) return await disputed();
    } catch (second) {
      error = second;
    }
    if (error.status === undefined) throw error;
    blame(error.status === 429 ? t('action.many', { wait: span(error.retryAfter || 1) }) : error.status === 0 ? t('settings.lost') : error.status === 401 ? t('status.locked')
      : t('action.failed', { status: error.status, why: error.message }));
    save.focus();
  }

  form.addEventListener('submit', event => {
    event.preventDefault();
    const wrong = form.querySelector(':invalid:not(form, fieldset)');
    if (wrong) wrong.reportValidity();
    else submit();
  });

  // What arrives while nothing is changed is shown; with changes under way a newer revision is told, and saving brings both side by side.
  function set(doc) {
    if (!draft.base) {
      adopt(doc);
      redraw();
    } else if (!rows.length) {
      redraw();
    }
    if (busy || dispute.firstChild) return;
    const { revision } = draft.base, pending = dirty().length > 0;
    if (doc.revision === revision || !pending) {
      const moved = doc.revision !== revision || !same(doc.effective, draft.base.effective) || !same(doc.overrides, draft.base.overrides);
      draft.base = doc;
      if (moved && !pending) {
        adopt(doc);
        redraw();
      } else if (moved) {
        rows.forEach(one => one.tell());
      }
      top.set(doc);
      top.newer(null);
    } else {
      top.newer(doc);
    }
  }

  const feed = live({ ask: signal => call('settings', { signal }), show: set, report });
  if (draft.base) redraw();
  return { now: feed.now, fault: old.fault, stop: feed.stop };
}
