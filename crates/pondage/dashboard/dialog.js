// A question before something happens. The browser's own <dialog> keeps the focus inside, ends with
// Escape, and gives the focus back.

import { html, useEffect, useRef, useState } from '/assets/vendor/preact-htm.js';

// `asked`: { title, text, command, label, danger, fields }; a field is { name, label, hint, value,
// options } and goes into `command(values)`.
export function Dialog({ asked, onDone, run }) {
  const place = useRef(null);
  const [values, setValues] = useState({});
  const [refused, setRefused] = useState(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    if (!asked) return;
    setValues(Object.fromEntries((asked.fields ?? []).map((field) => [field.name, field.value ?? ''])));
    setRefused(null);
    setBusy(false);
    if (!place.current.open) place.current.showModal();
  }, [asked]);
  if (!asked) return null;
  const text = asked.command(values);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    const error = await run(text);
    setBusy(false);
    if (error) setRefused(error);
    else place.current.close();
  };
  return html`<dialog ref=${place} aria-labelledby="asked" onClose=${onDone}>
    <form onSubmit=${submit}>
      <h2 id="asked">${asked.title}</h2>
      <p>${asked.text}</p>
      ${(asked.fields ?? []).map((field) => input(field, values, setValues))}
      <p><code>${text}</code></p>
      ${refused && html`<p role="alert" class="error"><b>${refused.message}</b> ${refused.hint}</p>`}
      <div class="buttons">
        <button type="button" onClick=${() => place.current.close()}>Cancel</button>
        <button type="submit" class=${asked.danger ? 'danger' : 'primary'} disabled=${busy}>${busy ? 'Working…' : asked.label}</button>
      </div>
    </form>
  </dialog>`;
}

function input(field, values, setValues) {
  const id = `field-${field.name}`;
  const set = (event) => setValues({ ...values, [field.name]: event.target.value });
  return html`<label for=${id}>${field.label}
    ${field.options
      ? html`<select id=${id} value=${values[field.name]} onChange=${set}>${field.options.map((option) => html`<option value=${option}>${option || '(as it is)'}</option>`)}</select>`
      : html`<input id=${id} value=${values[field.name]} onInput=${set} autocomplete="off" />`}
    ${field.hint && html`<span class="muted">${field.hint}</span>`}</label>`;
}
