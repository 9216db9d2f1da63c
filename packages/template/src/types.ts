/** The input and output of templates. */
import type { ArgumentType, RerunClass, SkipCause, StepState } from '@rackwright/messages';
import type { Expression } from './expression/syntax.ts';
import type { Problem } from './problems.ts';
import type { TextTemplate } from './text.ts';

export type ParseResult =
  | { readonly kind: 'ok'; readonly template: ParsedTemplate }
  | { readonly kind: 'bad'; readonly problems: readonly Problem[] };

export type RenderResult =
  | { readonly kind: 'ok'; readonly rendered: RenderedTemplate }
  | { readonly kind: 'bad'; readonly problems: readonly Problem[] };

/** A template that is right by itself; only a host and values can still be wrong. */
export interface ParsedTemplate {
  readonly source: string;
  readonly description: string;
  readonly timeout: TextTemplate | undefined;
  readonly variables: readonly ParsedVariable[];
  /** In their order; handlers come last. */
  readonly steps: readonly ParsedStep[];
}

export interface ParsedVariable {
  readonly name: string;
  readonly type: ArgumentType;
  readonly description: string;
  /** Undefined: it must be given. */
  readonly default: TextTemplate | undefined;
  /** For a choice: the allowed values. */
  readonly values: readonly string[];
  /** The position of its declaration in the source. */
  readonly at: number;
}

export type Action = 'script' | 'command' | 'file' | 'power' | 'bmc' | 'wait' | 'hold' | 'webhook';

export interface ParsedStep {
  readonly name: string;
  readonly action: Action;
  /** The engine's name of it. */
  readonly step: string;
  readonly arguments: readonly ParsedArgument[];
  readonly condition: Condition | undefined;
  readonly timeout: TextTemplate | undefined;
  /** Undefined also when only a host or a variable says it. */
  readonly timeoutMs: number | undefined;
  readonly retries: number;
  readonly onFailure: string;
  readonly onTimeout: string;
  readonly handOff: boolean;
  readonly destructive: boolean;
  readonly rerunClass: RerunClass;
  readonly handler: boolean;
  readonly path: string;
  /** Its position in the source. */
  readonly at: number;
}

export interface Condition {
  /** The source text. */
  readonly text: string;
  readonly expression: Expression;
  /** The position in the source of an offset of the text. */
  readonly at: (offset: number) => number;
  readonly path: string;
}

/** An argument of a step: one text, or texts that travel as JSON. */
export type ParsedArgument = { readonly name: string } & (
  | { readonly kind: 'text'; readonly text: TextTemplate }
  | { readonly kind: 'list'; readonly items: readonly TextTemplate[] }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [string, TextTemplate])[] }
);

/** The fields of a host that a template may use. Undefined is not known (yet). */
export interface TemplateHost {
  /** "hosts/h1" */
  readonly name: string;
  /** "h1" */
  readonly id: string;
  readonly uid: string;
  /** "r1" */
  readonly rack: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly bmc: { readonly address: string | undefined };
  readonly bootMacs: readonly string[];
  readonly serial: string | undefined;
  readonly manufacturer: string | undefined;
  readonly product: string | undefined;
  readonly memoryBytes: bigint | undefined;
  readonly disks: readonly TemplateDisk[];
  readonly interfaces: readonly TemplateInterface[];
}

export interface TemplateDisk {
  readonly serial: string | undefined;
  readonly wwn: string | undefined;
  readonly model: string | undefined;
  readonly sizeBytes: bigint | undefined;
  /** For example "sda"; it may change between boots. */
  readonly kernelName: string;
}

export interface TemplateInterface {
  readonly name: string;
  readonly mac: string;
  readonly speedMbps: bigint | undefined;
  readonly linkUp: boolean;
}

export interface RenderScope {
  readonly host: TemplateHost;
  readonly variables: Readonly<Record<string, string>>;
  readonly run: { readonly number: bigint };
}

export interface RenderedTemplate {
  readonly steps: readonly RenderedStep[];
  readonly timeoutMs: number | undefined;
}

export interface RenderedStep {
  /** Its own name, unique in the template. */
  readonly title: string;
  readonly action: Action;
  /** For the engine: run.script, powerOff, management.clear_event_log, … */
  readonly step: string;
  readonly arguments: Readonly<Record<string, string>>;
  readonly retries: number;
  readonly timeoutMs: number | undefined;
  /** "fail", "continue", "hold" or the title of a handler. */
  readonly onFailure: string;
  readonly onTimeout: string;
  /** The rest of the condition: on steps only; empty: always; "false": never. */
  readonly condition: string;
  /** Set when the condition is known to be false; then there are no arguments. */
  readonly skipCause: SkipCause;
  /** The same, for people. */
  readonly skippedBecause: string;
  readonly handOff: boolean;
  readonly destructive: boolean;
  readonly rerunClass: RerunClass;
  readonly handler: boolean;
}

/** The end of a step of the run, so far. */
export interface StepOutcome {
  readonly state: StepState;
  readonly exitCode: number | undefined;
  readonly lastOutput: string;
}
