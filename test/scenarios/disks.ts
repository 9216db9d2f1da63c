/**
 * A machine whose disks are files in a folder, and the runner's erase steps over it: planned and
 * executed by the production code, judged by what is in the files and by the disks' own logs.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { quietLog } from '@rackwright/agent/testing';
import {
  decideScope,
  defaultScopePolicy,
  methodToWire,
  type ScopeDecision,
  type ScopePolicy,
  storageDeviceOf,
} from '@rackwright/erasure';
import { agent, BmcIdentitySchema } from '@rackwright/messages';
import { nodeClock } from '@rackwright/platform/node';
import {
  eraseDevices,
  eraseDevicesMetadata,
  fileDisks,
  fileMachine,
  type StepResult,
} from '@rackwright/runner';

const clock = nodeClock();
const guid = '00112233445566778899aabbccddeeff';

/** One act in a disk's own log. */
export interface DiskAct {
  readonly time: number;
  readonly phase: 'begin' | 'end';
  readonly kind: string;
  readonly offset: number;
  readonly length: number;
}

export class FileHost {
  readonly #folder = mkdtempSync(join(tmpdir(), 'rackwright-scenario-'));

  constructor() {
    writeFileSync(this.#path('dmi'), JSON.stringify({ uuid: guid, serial: 'HOST-1' }));
  }

  /** A disk full of old data; its regions are files of `sizeBytes` each. */
  addDisk(name: string, description: object = {}, region = name, sizeBytes = 1_048_576): void {
    const text = JSON.stringify({ serial: `S-${name}`, ...description });
    writeFileSync(this.#path(`${name}.json`), text);
    writeFileSync(this.#path(`${region}.img`), Buffer.alloc(sizeBytes, 'OLD DATA'));
  }

  /** What is to be done with each disk, as the control plane decides it. */
  async plan(policy: Partial<ScopePolicy> = {}): Promise<ScopeDecision[]> {
    const { devices } = await fileDisks(this.#folder, clock).list();
    return decideScope(devices, { ...defaultScopePolicy, ...policy });
  }

  /** Lets the runner erase what is planned; disks that were refused are in the order too. */
  async erase(decisions: readonly ScopeDecision[]): Promise<StepResult> {
    const metadata = decisions.some(
      (decision) => decision.kind === 'inScope' && decision.method === 'metadataOnly',
    );
    const step = metadata ? eraseDevicesMetadata : eraseDevices;
    const name = step.description.name ?? '';
    const order = create(agent.RunStepSchema, {
      step: name,
      mode: agent.StepMode.RUN,
      challengeSeed: new Uint8Array(32).fill(9),
      expectedIdentity: create(BmcIdentitySchema, { guid: Buffer.from(guid, 'hex') }),
      devices: decisions
        .filter((decision) => decision.kind !== 'listed')
        .map((decision) =>
          create(agent.DevicePlanSchema, {
            device: storageDeviceOf(decision.device),
            ...(decision.kind === 'inScope' ? { method: methodToWire(decision.method) } : {}),
          }),
        ),
    });
    return step.run({
      operationId: 'u1/1/4/1',
      order,
      devices: fileDisks(this.#folder, clock),
      machine: fileMachine(this.#path('dmi'), clock),
      clock,
      log: quietLog,
      crashPoint: () => {},
      signal: new AbortController().signal,
      reportProgress: () => {},
      recordStage: () => Promise.resolve(),
      reportOutput: () => {},
      requestBegin: async () => ({ kind: 'granted' }),
      verdictSwitchedOff: false,
      runnerVersion: '0.0.0',
      hostName: 'h1',
      imageEndpoint: '',
      secretEnvironment: {},
    });
  }

  /** Whether any of the old data can still be read. */
  hasOldData(region: string): boolean {
    return readFileSync(this.#path(`${region}.img`)).includes('OLD DATA');
  }

  /** Whether every byte is zero. */
  isZero(region: string): boolean {
    return readFileSync(this.#path(`${region}.img`)).every((byte) => byte === 0);
  }

  /** What the disk itself saw, in order. */
  acts(name: string): DiskAct[] {
    const text = readFileSync(this.#path(`${name}.log`), 'utf8');
    return text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }

  #path(name: string): string {
    return join(this.#folder, name);
  }
}
