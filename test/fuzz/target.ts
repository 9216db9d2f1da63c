/**
 * What is fuzzed: one parser, with the inputs that it is known to take and the errors with which it
 * may refuse the others.
 */

/** A class of errors. */
export type ErrorClass = abstract new (...args: never[]) => Error;

/** Of inputs: which mutations make sense. */
export type InputForm = 'bytes' | 'text' | 'json';

export interface Target {
  /** Unique; begins with the name of its group and a dot. */
  readonly name: string;
  readonly form: InputForm;
  /** Well-formed inputs, in which every mutation begins. */
  readonly seeds: readonly Uint8Array[];
  /** Gives what the parser made of it; a promise where the parser gives one. */
  readonly parse: (input: Uint8Array) => unknown;
  /** Errors with which the parser refuses an input: these and nothing else. */
  readonly refusals: readonly ErrorClass[];
  /** Texts that mean something to the parser, which a bare mutation hardly ever makes. */
  readonly tokens?: readonly string[];
  /** Bounds that differ from `defaultBounds`, each with its reason in the table. */
  readonly bounds?: Partial<Bounds>;
}

export interface Bounds {
  /** Longest input that is tried. */
  readonly inputBytesMax: number;
  /** Processor time of one call, warm. */
  readonly callCpuMs: number;
  /** What a call gives, for an input of no bytes, and for each byte of it. */
  readonly resultBytesMax: number;
  readonly resultBytesPerByte: number;
  /** By how much one call may raise the peak of the memory of its process. */
  readonly peakBytesMax: number;
  /** What may stay in the heap from call to call, over a whole run. */
  readonly growthBytesMax: number;
  /** Processor time after which a call counts as one without end. */
  readonly hangCpuMs: number;
}

export const defaultBounds: Bounds = {
  inputBytesMax: 32 * 1024,
  callCpuMs: 200,
  resultBytesMax: 64 * 1024,
  resultBytesPerByte: 64,
  peakBytesMax: 96 * 1024 * 1024,
  growthBytesMax: 8 * 1024 * 1024,
  hangCpuMs: 4_000,
};

export function boundsOf(target: Target): Bounds {
  return { ...defaultBounds, ...target.bounds };
}

/** How an input failed. */
export const failureKinds = [
  /** An error that is no refusal of the target. */
  'thrown',
  /** The call takes too long. */
  'slow',
  /** The call does not end while it computes. */
  'hang',
  /** The call does not end, and nothing computes. */
  'unsettled',
  /** What the call gives is too large for its input. */
  'large',
  /** The call takes too much memory while it runs, or ends the process. */
  'memory',
  /** Something stays in memory from call to call. */
  'growth',
  /** The call has changed what all objects inherit. */
  'prototype',
] as const;

export type FailureKind = (typeof failureKinds)[number];

export interface Failure {
  readonly kind: FailureKind;
  /** Tells failures of one kind apart: of an error its class and where it was thrown. */
  readonly signature: string;
  /** For a person. */
  readonly text: string;
}

export function isSameFailure(one: Failure, other: Failure | undefined): boolean {
  return other !== undefined && one.kind === other.kind && one.signature === other.signature;
}

/** Chance out of a seed. */
export interface Chance {
  /** A whole number from 0 to below the limit. */
  below(limit: number): number;
}

const encoder = new TextEncoder();

/** Seeds of a target of text. */
export function texts(...all: readonly string[]): Uint8Array[] {
  return all.map((text) => encoder.encode(text));
}

/** Seeds of a target of JSON. */
export function documents(...all: readonly unknown[]): Uint8Array[] {
  return texts(...all.map((value) => JSON.stringify(value)));
}

const decoder = new TextDecoder();

/** An input as the text that a program or a peer sends. */
export function textOf(input: Uint8Array): string {
  return decoder.decode(input);
}
