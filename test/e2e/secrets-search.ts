/**
 * Looks for secrets where none may be: in bytes, in folders, in answers of every reading method and
 * in what processes show of themselves. A secret is found as it is, in base64 at any offset, in hex
 * and in a URL.
 */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { DescMethod, DescService } from '@bufbuild/protobuf';
import { ApiFailure } from '@rackwright/messages';

/** What is looked for, by the name under which a finding is told. */
export type Planted = Readonly<Record<string, string | Uint8Array>>;

/** A secret of this name, with letters that each encoding writes in its own way. */
export function secret(name: string): string {
  return `${name}/${randomBytes(12).toString('hex')}+"é&`;
}

/** One place where a secret was found. */
export interface Finding {
  readonly secret: string;
  readonly encoding: string;
  readonly where: string;
}

interface Needle {
  readonly encoding: string;
  readonly bytes: Buffer;
}

/** Base64 of what may stand anywhere in a longer text: without the digits that its sides share. */
function base64At(secret: Buffer, offset: number): string {
  const text = Buffer.concat([Buffer.alloc(offset), secret])
    .toString('base64')
    .replace(/=+$/, '');
  const from = Math.ceil((offset * 8) / 6);
  const until = Math.floor(((offset + secret.length) * 8) / 6);
  return text.slice(from, until);
}

function needlesOf(secret: string | Uint8Array): Needle[] {
  const bytes = Buffer.from(secret);
  const hex = bytes.toString('hex');
  const texts: [string, string][] = [
    ['hex', hex],
    ['HEX', hex.toUpperCase()],
  ];
  const needles: Needle[] = [{ encoding: 'plain', bytes }];
  if (typeof secret === 'string') {
    texts.push(['URL', encodeURIComponent(secret)], ['JSON', JSON.stringify(secret).slice(1, -1)]);
    needles.push({ encoding: 'UTF-16', bytes: Buffer.from(secret, 'utf16le') });
  }
  for (const offset of [0, 1, 2]) {
    const text = base64At(bytes, offset);
    texts.push([`base64+${offset}`, text]);
    texts.push([`base64url+${offset}`, text.replaceAll('+', '-').replaceAll('/', '_')]);
  }
  return [...needles, ...texts.map(([encoding, text]) => ({ encoding, bytes: Buffer.from(text) }))];
}

/** Searches for the same secrets again and again. */
export class SecretSearch {
  readonly findings: Finding[] = [];
  readonly #needles: readonly (Needle & { readonly secret: string })[];

  constructor(planted: Planted) {
    this.#needles = Object.entries(planted).flatMap(([secret, value]) =>
      needlesOf(value).map((needle) => ({ ...needle, secret })),
    );
  }

  /** `allowed`: secrets that may stand there. */
  bytes(where: string, bytes: Uint8Array, allowed: readonly string[] = []): void {
    const haystack = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (const { secret, encoding, bytes: needle } of this.#needles) {
      if (allowed.includes(secret) || !haystack.includes(needle)) continue;
      this.findings.push({ secret, encoding, where });
    }
  }

  text(where: string, text: string, allowed: readonly string[] = []): void {
    this.bytes(where, Buffer.from(text), allowed);
  }

  /** Every file below, with what each may hold by its path there. Answers how many there were. */
  folder(root: string, allowed: Readonly<Record<string, readonly string[]>> = {}): number {
    let count = 0;
    for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
      const path = join(root, name);
      if (!statSync(path, { throwIfNoEntry: false })?.isFile()) continue;
      count += 1;
      this.bytes(path, readFileSync(path), allowed[relative(root, path)] ?? []);
    }
    return count;
  }

  /** A message with all bytes in it, as they are and as JSON. */
  message(where: string, value: unknown): void {
    const text = JSON.stringify(value, (_, each: unknown) => {
      if (each instanceof Uint8Array) {
        this.bytes(where, each);
        return Buffer.from(each).toString('latin1');
      }
      return typeof each === 'bigint' ? String(each) : each;
    });
    this.text(where, text ?? '');
  }
}

/**
 * A process becomes another program soon after it begins, if ever: whoever is older is looked at
 * less often, which is most of what a watch of long-lived programs costs.
 */
const youngLooks = 400;
const oldLookEvery = 50;

/** What processes show to everybody on the machine, sampled while they come and go. */
export class ProcessWatch {
  /** Lines of arguments that were seen. */
  readonly seen = new Set<string>();
  readonly #search: SecretSearch;
  readonly #roots: () => readonly number[];
  readonly #timer: NodeJS.Timeout;
  readonly #looked = new Set<string>();
  /** Of each process that is there: how often it was met. */
  #looks: ReadonlyMap<number, number> = new Map();

  /** `roots`: processes that are watched together with all that they have started. */
  constructor(search: SecretSearch, roots: () => readonly number[], intervalMs = 5) {
    this.#search = search;
    this.#roots = roots;
    this.#timer = setInterval(() => this.sample(), intervalMs);
  }

  /** Down from the roots: all of /proc, as often as this, is most of a processor. */
  sample(): void {
    const waiting = [...this.#roots()];
    const met = new Map<number, number>();
    for (let pid = waiting.pop(); pid !== undefined; pid = waiting.pop()) {
      if (met.has(pid)) continue;
      const before = this.#looks.get(pid) ?? 0;
      met.set(pid, before + 1);
      if (before < youngLooks || before % oldLookEvery === 0) this.#look(pid);
      waiting.push(...childrenOf(pid));
    }
    this.#looks = met;
  }

  #look(pid: number): void {
    const line = contents(`/proc/${pid}/cmdline`);
    const environment = contents(`/proc/${pid}/environ`);
    const key = Buffer.concat([line, environment]).toString('latin1');
    if (this.#looked.has(key)) return;
    this.#looked.add(key);
    const text = line.toString('utf8').replaceAll('\0', ' ').trim();
    this.seen.add(text);
    this.#search.bytes(`arguments of ${text}`, line);
    this.#search.bytes(`environment of ${text}`, environment);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/** What its main thread has started; no program that is watched starts others from elsewhere. */
function childrenOf(pid: number): number[] {
  const line = contents(`/proc/${pid}/task/${pid}/children`).toString('latin1').trim();
  return line === '' ? [] : line.split(' ').map(Number);
}

/** Empty when the process is gone. */
function contents(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    return Buffer.alloc(0);
  }
}

type Call = (
  request: Readonly<Record<string, unknown>>,
  options: { readonly signal: AbortSignal },
) => unknown;

const reading = /^(Get|List|Watch|Explain|Read|Diff|Plan|WhoAmI)/;
const namesMax = 60;
const streamMs = 1_000;
const streamsAtOnce = 16;

/**
 * Calls every reading method of these services with every name that any of them has answered, and
 * searches all answers and refusals. Answers the methods that nobody answered.
 */
export async function sweepReads(
  search: SecretSearch,
  services: readonly { readonly service: DescService; readonly client: object }[],
  more: readonly Readonly<Record<string, unknown>>[],
): Promise<string[]> {
  const names = new Set<string>();
  const silent = new Set<string>();
  const asked = new Set<string>();
  const methods = services.flatMap(({ service, client }) =>
    service.methods
      .filter(({ name }) => reading.test(name))
      .map((method) => ({ id: `${service.name}.${method.name}`, method, client })),
  );
  for (const { id } of methods) silent.add(id);
  for (let round = 0; round < 3; round += 1) {
    for (const { id, method, client } of methods) {
      const call = (client as Readonly<Record<string, Call>>)[method.localName];
      if (call === undefined) throw new Error(`no client of ${id}`);
      const ask = async (request: Readonly<Record<string, unknown>>): Promise<void> => {
        const key = `${id} ${keyOf(request)}`;
        if (asked.has(key)) return;
        asked.add(key);
        const answers = await answersOf(search, key, call, request);
        search.message(key, answers);
        collectNames(answers, names);
        if (answers.length > 0) silent.delete(id);
      };
      const requests = requestsOf(method, [...names].slice(0, namesMax), more);
      // Streams are read for a while each.
      const atOnce = method.methodKind === 'unary' ? 1 : streamsAtOnce;
      for (let at = 0; at < requests.length; at += atOnce) {
        await Promise.all(requests.slice(at, at + atOnce).map(ask));
      }
    }
  }
  return [...silent];
}

function keyOf(request: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(request, (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
}

function requestsOf(
  { input }: DescMethod,
  names: readonly string[],
  more: readonly Readonly<Record<string, unknown>>[],
): Readonly<Record<string, unknown>>[] {
  const fields = input.fields.map(({ localName }) => localName);
  const named = ['name', 'parent', 'host', 'rack', 'subject'].filter((field) =>
    fields.includes(field),
  );
  const known = [...fields, ...input.oneofs.map(({ localName }) => localName)];
  const fitting = more.filter((each) => Object.keys(each).every((field) => known.includes(field)));
  return [{}, ...fitting, ...named.flatMap((field) => names.map((name) => ({ [field]: name })))];
}

async function answersOf(
  search: SecretSearch,
  key: string,
  call: Call,
  request: Readonly<Record<string, unknown>>,
): Promise<unknown[]> {
  const ending = new AbortController();
  const answers: unknown[] = [];
  try {
    const answer = call(request, { signal: ending.signal });
    if (!isStream(answer)) return [await answer];
    const timer = setTimeout(() => ending.abort(), streamMs);
    try {
      for await (const each of answer) answers.push(each);
    } finally {
      clearTimeout(timer);
    }
  } catch (error) {
    if (error instanceof ApiFailure) search.message(`${key}, refused`, error.error);
    else if (!ending.signal.aborted) search.text(`${key}, failed`, String(error));
  }
  return answers;
}

function isStream(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

function collectNames(value: unknown, names: Set<string>): void {
  if (Array.isArray(value)) for (const each of value) collectNames(each, names);
  else if (typeof value === 'object' && value !== null && !(value instanceof Uint8Array)) {
    for (const [field, each] of Object.entries(value)) {
      if (field === 'name' && typeof each === 'string' && each.includes('/')) names.add(each);
      else collectNames(each, names);
    }
  }
}
