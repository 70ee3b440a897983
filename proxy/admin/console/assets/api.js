// The admin API: one table of what this console asks, the token, and what can go wrong.

const endpoints = {
  queue: ['GET', '/api/v1/system/downloads/queue'],
  history: ['GET', '/api/v1/system/downloads/history'],
  sessions: ['GET', '/api/v1/system/downloads/sessions'],
  session: ['GET', '/api/v1/system/downloads/sessions/{id}'],
  move: ['POST', '/api/v1/system/downloads/sessions/{id}/move'],
  pause: ['POST', '/api/v1/system/downloads/sessions/{id}/pause'],
  resume: ['POST', '/api/v1/system/downloads/sessions/{id}/resume'],
  kick: ['POST', '/api/v1/system/downloads/sessions/{id}/kick'],
  settings: ['GET', '/api/v1/system/downloads/settings'],
  save: ['PUT', '/api/v1/system/downloads/settings'],
};

const patience = 15000; // milliseconds for one answer
const key = 'arkvory.token';

let token = '';
try {
  token = sessionStorage.getItem(key) || '';
} catch {
  // A browser that stores nothing asks anew on each visit.
}

export const hasToken = () => token !== '';

// setToken keeps the token while this tab lives; an empty one forgets it.
export function setToken(text) {
  token = text;
  try {
    if (text) sessionStorage.setItem(key, text);
    else sessionStorage.removeItem(key);
  } catch {
    // It is kept in memory alone then.
  }
}

// Trouble is an answer that is none of 2xx, or no answer: status 0. Its other fields are those of the body of a refusal.
export class Trouble extends Error {
  constructor(status, body, retryAfter) {
    super(body?.message || `status ${status}`);
    this.status = status;
    this.reason = body?.reason || '';
    this.faults = Array.isArray(body?.faults) ? body.faults : [];
    this.retryAfter = retryAfter;
  }
}

// ask is what asks the reader for a token: it resolves to true when there is a new one. The composition sets it.
let ask = async () => false;
let asking = null;

export function onUnauthorized(asker) {
  ask = asker;
}

// unlock asks for the token once, however many calls want one.
export function unlock(wrong) {
  asking ??= ask(wrong).finally(() => { asking = null; });
  return asking;
}

function pace(response) {
  const seconds = Number(response.headers.get('Retry-After'));
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, 3600) : 0;
}

async function read(response) {
  try {
    return await response.json();
  } catch {
    return null;
  }
}

// once sends a request with the token as it is now.
async function once(name, { id, query, body, signal }) {
  const [method, path] = endpoints[name];
  const url = new URL(path.replace('{id}', encodeURIComponent(id ?? '')), location.origin);
  for (const [field, text] of Object.entries(query || {})) {
    if (text !== '' && text !== null && text !== undefined) url.searchParams.set(field, text);
  }
  const headers = { Accept: 'application/json' };
  if (token) headers.Authorization = `Bearer ${token}`;
  if (method !== 'GET') headers['Content-Type'] = 'application/json';
  const limit = AbortSignal.timeout(patience);
  let response;
  try {
    response = await fetch(url, {
      method, headers, body: method === 'GET' ? undefined : JSON.stringify(body ?? {}),
      cache: 'no-store', credentials: 'omit', redirect: 'error', referrerPolicy: 'no-referrer',
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Trouble(0, { message: error.message });
  }
  const answer = await read(response);
  if (!response.ok) throw new Trouble(response.status, answer, pace(response));
  if (answer === null) throw new Trouble(0, { message: 'no JSON' });
  return answer;
}

// call asks and returns the JSON of the answer. Where the token is missing or wrong the reader is asked for one and the call is repeated; a
// reader that does not want to tell gets the Trouble 401.
export async function call(name, what = {}) {
  for (;;) {
    if (asking && !await asking) throw new Trouble(401, null);
    const used = token;
    try {
      return await once(name, what);
    } catch (error) {
      if (error.status !== 401 || !what.interactive && declined) throw error;
      // Another call may have got a new token while this one was under way.
      if (used !== token && token) continue;
      if (!await unlock(used !== '')) {
        declined = true;
        throw error;
      }
      declined = false;
    }
  }
}

// declined: the reader closed the question; polls do not put it again, a click does.
let declined = false;

// reconsider lets polls ask for the token again.
export function reconsider() {
  declined = false;
}

// probe says whether a token would do: true, false, or the Trouble that kept from finding out.
export async function probe(text) {
  const before = token;
  token = text;
  try {
    await once('queue', {});
    return true;
  } catch (error) {
    token = before;
    if (error.status === 401) return false;
    throw error;
  }
}
