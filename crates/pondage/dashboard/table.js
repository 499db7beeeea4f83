// One table of the console: sorted by a click on a column's name, filtered by words, cards where
// the window is narrow. Roles are said outright, for a table that is shown as blocks has none.

import { html, useMemo, useState } from '/assets/vendor/preact-htm.js';
import * as format from '/assets/format.js';

const NUMERIC = new Set(['count', 'rate', 'percent', 'seconds', 'micros', 'bytes']);

// `columns`: [name in the console, label, unit, more]; `more.wide` for long texts. `actions` gives
// a row's buttons; a row is an object by the console's names.
export function Table({ id, caption, note, table, columns, actions, empty, state }) {
  const [sort, setSort] = useState(null);
  const [filter, setFilter] = useState('');
  const rows = useMemo(() => objects(table), [table]);
  if (!table) return html`<${Empty} caption=${caption} text=${empty} />`;
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (row) => {
    const all = columns.map(([name]) => String(row[name] ?? '')).join(' ').toLowerCase();
    return words.every((word) => all.includes(word));
  };
  const shown = rows.filter(fits);
  if (sort) shown.sort(by(sort.name, sort.down));
  const filterId = `${id}-filter`;
  return html`<section class="panel">
    <div class="panel-head">
      <h2 id=${`${id}-caption`}>${caption} <span class="muted">${format.count(rows.length + (table.more ?? 0))}</span></h2>
      ${rows.length > 5 && html`<label class="filter" for=${filterId}><span class="visually-hidden">Filter ${caption}</span>
        <input id=${filterId} type="search" placeholder="Filter" value=${filter} onInput=${(event) => setFilter(event.target.value)} /></label>`}
    </div>
    ${note && html`<p class="note">${note}</p>`}
    ${rows.length === 0
      ? html`<p class="empty">${empty}</p>`
      : html`<div class="scroll" tabindex="0" role="region" aria-labelledby=${`${id}-caption`}>
      <table role="table" aria-labelledby=${`${id}-caption`}>
        <thead role="rowgroup"><tr role="row">
          ${columns.map(([name, label, unit]) => head(name, label, unit, sort, setSort))}
          ${actions && html`<th role="columnheader" scope="col"><span class="visually-hidden">Actions</span></th>`}
        </tr></thead>
        <tbody role="rowgroup">
          ${shown.map((row) => html`<tr role="row" key=${key(columns, row)}>
            ${columns.map((column) => cell(column, row, state))}
            ${actions && html`<td role="cell" class="actions">${actions(row)}</td>`}
          </tr>`)}
        </tbody>
      </table></div>
      ${shown.length === 0 && html`<p class="empty">No row has all of these words.</p>`}`}
    ${table.more > 0 && html`<p class="note">The first ${rows.length} of ${rows.length + table.more}; the console shows all.</p>`}
  </section>`;
}

export function Empty({ caption, text }) {
  return html`<section class="panel"><h2>${caption}</h2><p class="empty">${text}</p></section>`;
}

export function objects(table) {
  if (!table) return [];
  return table.rows.map((row) => Object.fromEntries(table.columns.map((name, at) => [name, row[at]])));
}

function head(name, label, unit, sort, setSort) {
  const mine = sort?.name === name;
  const next = () => setSort(mine && !sort.down ? null : { name, down: !mine });
  const order = mine ? (sort.down ? 'descending' : 'ascending') : 'none';
  return html`<th role="columnheader" scope="col" aria-sort=${order} class=${NUMERIC.has(unit) ? 'number' : ''}>
    <button type="button" class="sort" onClick=${next}>${label}<span aria-hidden="true">${mine ? (sort.down ? ' ↓' : ' ↑') : ''}</span></button></th>`;
}

function cell([name, label, unit = 'text', more = {}], row) {
  const shown = (more.format ?? format[unit])(row[name], row);
  const classes = [NUMERIC.has(unit) && 'number', more.wide && 'wide', more.warn?.(row) && 'warn'];
  return html`<td role="cell" data-label=${label} class=${classes.filter(Boolean).join(' ')}>
    ${more.wide ? html`<code>${shown}</code>` : shown}</td>`;
}

const key = (columns, row) => columns.slice(0, 4).map(([name]) => row[name]).join(' ') + (row.client_id ?? '');

function by(name, down) {
  const order = (a, b) => {
    const [left, right] = [a[name], b[name]];
    if (left === right) return 0;
    if (left === null) return 1;
    if (right === null) return -1;
    return typeof left === 'number' ? left - right : String(left).localeCompare(String(right));
  };
  return (a, b) => (down ? order(b, a) : order(a, b));
}
