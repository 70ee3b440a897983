// The question for the admin token. It is kept in sessionStorage alone and sent as Authorization: Bearer, never in an address.
import { probe, setToken } from './api.js';
import { attr, fresh, h, put, show } from './dom.js';
import { span } from './format.js';
import { t } from './i18n.js';

// askToken asks until the server takes a token (true) or the reader closes the question (false). wrong: one was refused just now.
export function askToken(wrong) {
  const title = fresh('title'), hint = fresh('hint'), problem = fresh('problem');
  const input = h('input', { type: 'password', id: fresh('token'), autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', required: true,
    'aria-describedby': `${hint} ${problem}` });
  const fault = h('p', { id: problem, class: 'fault', role: 'alert' });
  const enter = h('button', { type: 'submit', class: 'primary' }, t('token.enter'));
  const form = h('form', {}, h('h2', { id: title }, t('token.title')), h('p', { id: hint }, t('token.hint')),
    h('label', { for: input.id }, t('token.label')), input, fault,
    h('div', { class: 'actions' }, h('button', { type: 'button', onclick: () => dialog.close('') }, t('cancel')), enter));
  const dialog = h('dialog', { 'aria-labelledby': title, class: 'narrow' }, form);

  function blame(text) {
    put(fault, text);
    show(fault, text !== '');
    attr(input, 'aria-invalid', text !== '' ? 'true' : null);
    input.select();
    input.focus();
  }

  form.addEventListener('submit', async event => {
    event.preventDefault();
    if (enter.getAttribute('aria-disabled')) return;
    attr(enter, 'aria-disabled', 'true');
    try {
      // What cannot stand in a header cannot be the token.
      if (!/^[\x21-\x7e]+$/.test(input.value) || !await probe(input.value)) return blame(t('token.wrong'));
      setToken(input.value);
      dialog.close('given');
    } catch (error) {
      blame(error.status === 429 ? t('token.many', { wait: span(error.retryAfter || 60) }) : t('token.unknown'));
    } finally {
      attr(enter, 'aria-disabled', null);
    }
  });
  document.body.append(dialog);
  show(fault, false);
  dialog.showModal();
  if (wrong) blame(t('token.wrong'));
  return new Promise(done => {
    dialog.addEventListener('close', () => {
      dialog.remove();
      done(dialog.returnValue === 'given');
    });
  });
}
