// What the pages ask of the door, and the stream of states.

let csrf = null;

// An answer of the door that is no success: `code`, `message` and `hint` are for people.
export class Refused extends Error {
  constructor(status, error) {
    super(error.message);
    this.status = status;
    this.code = error.code;
    this.hint = error.hint;
  }
}

async function ask(method, path, body) {
  const headers = {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (csrf) headers['X-Pondage-CSRF'] = csrf;
  let answer;
  try {
    answer = await fetch(`/api/v1/${path}`, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    const hint = 'Is the process running? This page goes on by itself when it is back.';
    throw new Refused(0, { code: 'offline', message: 'Pondage does not answer', hint });
  }
  if (answer.status === 204) return null;
  const unreadable = { code: `HTTP ${answer.status}`, message: 'unexpected answer', hint: '' };
  const value = await answer.json().catch(() => ({ error: unreadable }));
  if (!answer.ok) throw new Refused(answer.status, value.error ?? unreadable);
  return value;
}

function keep(session) {
  csrf = session.csrf;
  return session;
}

export const session = async () => keep(await ask('GET', 'session'));
export const logIn = async (given) => keep(await ask('POST', 'session', given));
export const logOut = () => ask('DELETE', 'session');
export const history = () => ask('GET', 'history');
export const command = (text) => ask('POST', 'command', { command: text });

const AGAIN_MS = 2000;

// Calls `heard` with each state, `lost` when there is no connection, and `ended` when the session
// is none any more. Gives what closes it.
export function stream({ heard, lost, ended }) {
  let source = null;
  let timer = null;
  let closed = false;
  const open = () => {
    source = new EventSource('/api/v1/stream');
    source.addEventListener('state', (event) => heard(JSON.parse(event.data)));
    source.onerror = () => {
      lost();
      // The browser connects again by itself unless it was refused.
      if (source.readyState !== EventSource.CLOSED) return;
      timer = setTimeout(async () => {
        try {
          await session();
        } catch (error) {
          if (error.status === 401) return ended();
        }
        if (!closed) open();
      }, AGAIN_MS);
    };
  };
  open();
  return () => {
    closed = true;
    clearTimeout(timer);
    source.close();
  };
}

// As SQL and the console write a name.
export const quoted = (name) =>
  /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
