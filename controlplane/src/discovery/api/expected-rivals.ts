/**
 * Which line of the manifest names what another one names. Lines by the thousand are taken in one
 * after the other, so what the store has is read once in a while and not for each.
 *
 * Invariants:
 * 1. What was read is as old as `freshMs` at most; what this process has written since is in it.
 * 2. A line is called a rival by what the store has of it at that moment, never by what was read
 *    before. One that another replica has just made is missed: it is told later, of both.
 */
import { fromBinary } from '@bufbuild/protobuf';
import {
  alreadyExists,
  type ExpectedHost,
  failedPrecondition,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import type { RpcDependencies } from '../../call/ports.ts';
import { answered, readRecord } from '../../records/index.ts';

const lines = 'expectedHosts';
/** Lines that the manifest may have. */
const linesMax = 10_000;
const freshMs = 1_000;

const fields = ['serial', 'mac', 'bmcAddress'] as const;

/** Looks for rivals in one store. */
export class ExpectedRivals {
  readonly #deps: Pick<RpcDependencies, 'store' | 'clock'>;
  readonly #names = new Set<string>();
  /** "serial SN-1" → names of lines. */
  readonly #byValue = new Map<string, Set<string>>();
  #readAtMs = Number.NEGATIVE_INFINITY;

  constructor(deps: Pick<RpcDependencies, 'store' | 'clock'>) {
    this.#deps = deps;
  }

  /** Throws when the manifest is full, or another line names the same machine. */
  async refuse(line: ExpectedHost): Promise<void> {
    await this.#refresh();
    if (this.#names.size >= linesMax && !this.#names.has(line.name)) {
      throw failedPrecondition('TOO_MANY', `The manifest has ${linesMax} lines already.`);
    }
    for (const field of fields) {
      for (const name of this.#byValue.get(valueOf(line, field)) ?? []) {
        if (name === line.name || !(await this.#isRival(name, line, field))) continue;
        const wireName = field === 'bmcAddress' ? 'bmc_address' : field;
        const description = `is that of ${name} too; each machine has one line`;
        const path = `expected_host.match.${wireName}`;
        throw alreadyExists(`${path} ${description}.`, [{ field: path, description }]);
      }
    }
  }

  /** Takes in what was just written. */
  note(line: ExpectedHost): void {
    this.#names.add(line.name);
    for (const field of fields) {
      const value = valueOf(line, field);
      const named = this.#byValue.get(value) ?? new Set();
      if (value !== '') this.#byValue.set(value, named.add(line.name));
    }
  }

  async #refresh(): Promise<void> {
    const { clock, store } = this.#deps;
    const nowMs = clock.suspendAwareMs();
    if (nowMs - this.#readAtMs < freshMs) return;
    const { entries } = await answered(store.list(lines));
    this.#readAtMs = nowMs;
    this.#names.clear();
    this.#byValue.clear();
    for (const { value } of entries) {
      const { expectedHost } = fromBinary(wire.ExpectedHostRecordSchema, value);
      if (expectedHost !== undefined) this.note(expectedHost);
    }
  }

  /** Invariant 2. A line that has taken its machine is nobody's rival. */
  async #isRival(name: string, line: ExpectedHost, field: Field): Promise<boolean> {
    const key = storeKey(lines, name.slice(lines.length + 1));
    const kept = await readRecord(this.#deps.store, wire.ExpectedHostRecordSchema, key);
    const other = kept?.record.expectedHost;
    return other?.host === '' && valueOf(other, field) === valueOf(line, field);
  }
}

type Field = (typeof fields)[number];

/** Empty: the line does not name it. */
function valueOf({ match }: ExpectedHost, field: Field): string {
  const value = match?.[field] ?? '';
  return value === '' ? '' : `${field} ${value}`;
}
