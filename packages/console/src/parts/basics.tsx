/** Small parts of every page: badges, times, panels, fields, and what stands where nothing does. */

import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { ComponentChildren } from 'preact';
import { useConsole } from '../browser/console.ts';
import { useNow } from '../browser/hooks.ts';
import { ago, idOf, msOf, utc } from '../logic/format.ts';
import type { Tone } from '../logic/host-tones.ts';
import { routeOf } from '../logic/route.ts';

interface ToneProps {
  readonly tone: Tone;
  readonly children: ComponentChildren;
  readonly title?: string;
}

/** A state: its shape says the tone to whoever sees no colours. */
export function Badge({ tone, children, title }: ToneProps) {
  return (
    <span class={`badge ${tone}`} title={title}>
      <Mark tone={tone} />
      {children}
    </span>
  );
}

const marks: Readonly<Record<Tone, string>> = {
  good: 'M2 6.500 5 9.500 10 3',
  busy: 'M6 2a4 4 0 1 1-4 4',
  warn: 'M6 1.500 11 10.500H1Z',
  bad: 'M2.500 2.500 9.500 9.500M9.500 2.500 2.500 9.500',
  calm: 'M2.500 6H9.500',
  used: 'M2.500 2.500H9.500V9.500H2.500Z',
};

export function Mark({ tone }: { readonly tone: Tone }) {
  return (
    <svg class={`mark ${tone}`} viewBox="0 0 12 12" aria-hidden="true">
      <path d={marks[tone]} />
    </svg>
  );
}

/** "5 min ago", with the exact time behind it. */
export function Time({ at }: { readonly at: Timestamp | undefined }) {
  const { clock } = useConsole();
  useNow(10_000);
  const ms = msOf(at);
  if (ms === undefined) return <span class="quiet">–</span>;
  return (
    <time dateTime={new Date(ms).toISOString()} title={utc(ms)}>
      {ago(clock.nowMs(), ms)}
    </time>
  );
}

/** A link to the page of a resource. */
export function Resource({ name }: { readonly name: string }) {
  return name === '' ? <span class="quiet">–</span> : <a href={routeOf(name)}>{idOf(name)}</a>;
}

interface PanelProps {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly tone?: Tone;
}

/** A part of a page with a heading of its own. */
export function Panel({ title, children, actions, tone }: PanelProps) {
  return (
    <section class={`panel${tone === undefined ? '' : ` edge ${tone}`}`}>
      <header>
        <h2>{title}</h2>
        {actions}
      </header>
      {children}
    </section>
  );
}

export interface FieldRow {
  readonly label: string;
  readonly value: ComponentChildren;
}

/** Labels with values; those without a value are left out. */
export function Fields({ rows }: { readonly rows: readonly FieldRow[] }) {
  const shown = rows.filter(({ value }) => value !== undefined && value !== '');
  return (
    <dl class="fields">
      {shown.map(({ label, value }) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Where there is nothing to show, why. */
export function Nothing({ children }: { readonly children: ComponentChildren }) {
  return <p class="nothing">{children}</p>;
}

export function Loading({ subject }: { readonly subject: string }) {
  return (
    <p class="nothing" role="status">
      {subject} …
    </p>
  );
}

interface MeterProps {
  readonly percent: number;
  readonly label: string;
  readonly tone?: Tone;
}

/** A bar that fills. */
export function Meter({ percent, label, tone = 'busy' }: MeterProps) {
  return (
    <div
      class={`meter ${tone}`}
      role="progressbar"
      aria-label={label}
      aria-valuenow={percent}
      aria-valuemin={0}
      aria-valuemax={100}
    >
      <div style={{ width: `${percent}%` }} />
    </div>
  );
}

interface PageHeadProps {
  readonly title: ComponentChildren;
  readonly above?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children?: ComponentChildren;
}

/** The head of a page: where one is, what it is, what can be done. */
export function PageHead({ title, above, actions, children }: PageHeadProps) {
  return (
    <div class="page-head">
      {above !== undefined && <p class="above">{above}</p>}
      <div class="title-row">
        <h1 tabIndex={-1}>{title}</h1>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </div>
      {children}
    </div>
  );
}
