/**
 * The judge's rules about disks that lose a wipe at power-off, or show it late. What a disk did and
 * what was read from it is known from its own log; records and reports only say what was said.
 *
 * E1 An addendum stands only where the disk was wiped, lost its power, and was then read without
 *    any old data, by a boot of our runner. In one store no certificate has an addendum and
 *    a revocation; a restored store may have lost the addendum, and a later reading decides.
 * E2 Where a reading saw old data and its result was taken in, the certificate is revoked, the
 *    fault stands, and the host is not available, until the disk is wiped again. The fault stands
 *    until the disk has also been read clean after a loss of power.
 * E3 A disk that was certified and has lost its power is not written, and its host runs no program
 *    of a template, before somebody has tried to read it again. It is certified when the record of
 *    its host cites the certificate. It may be erased anew, and programs may run, once its
 *    certificate is of an earlier use: that proves nothing any more; or once its run, or a run that
 *    resumes it, has lost the boot that erased it: nobody saw what was done to it since, so a
 *    reading would tell nothing.
 * E4 No image comes onto a machine with a disk whose content came back, unless the reading after
 *    the loss of power saw it clean.
 * E5 A clean that reads again at once ends in `available` only when it has.
 */
import { fromBinary } from '@bufbuild/protobuf';
import {
  type agent,
  ErasureDocumentKind,
  FailureType,
  HostState,
  type HostUid,
  hasFault,
  type OperationId,
  PowerCycleCheck,
  type Run,
  RunKind,
  RunPhase,
  StepState,
  store,
  verifyErasedStep,
} from '@rackwright/messages';
import type { DriveEvent, SimDrive } from './drives.ts';
import { documentOf, type ErasureDocument } from './erasure-document.ts';
import { type JudgedHost, type JudgeParts, machineOf } from './judged.ts';
import type { ImageEvent, SimMachine } from './machine.ts';

/** Failures by which a runner says nothing of the disks. */
const technical: ReadonlySet<FailureType> = new Set([
  FailureType.CANCELLED,
  FailureType.DEADLINE,
  FailureType.IDENTITY_MISMATCH,
  FailureType.IDENTITY_UNPROVEN,
  FailureType.INTERNAL,
  FailureType.INTERRUPTED,
  FailureType.INVALID_ARGUMENT,
  FailureType.INVALID_BMC_ACCESS,
  FailureType.INVALID_BOOT_SETTINGS,
  FailureType.UNSUPPORTED,
]);

/** Runs by which a person switches a host on for something else than our runner. */
const switching: ReadonlySet<RunKind> = new Set([RunKind.POWER, RunKind.RESCUE, RunKind.ADOPT]);

/** What a disk went through since it was last written; times of the simulation. */
interface DiskStory {
  /** -1: never. */
  writtenMs: number;
  powerLostMs: number;
  triedMs: number;
  /** It was read clean after it had lost its power. */
  provedMs: number;
  certificate:
    | {
        readonly name: string;
        readonly hostUid: HostUid;
        readonly useEpoch: number;
        /** The record of its host has cited it. */
        isCited: boolean;
      }
    | undefined;
}

interface Reading {
  readonly hostUid: HostUid;
  readonly certificates: ReadonlyMap<string, string>;
  /** Serials in which it saw old data. */
  readonly old: Set<string>;
  result: agent.Report['result'] | undefined;
  isTaken: boolean;
}

interface Conviction {
  readonly serial: string;
  /** It has been written since; the fault still stands. */
  isWiped: boolean;
}

export class ProofJudge {
  readonly #parts: JudgeParts;
  readonly #hosts: ReadonlyMap<string, JudgedHost>;
  readonly #found: (rule: string, text: string) => void;
  readonly #disks = new Map<string, DiskStory>();
  /** By operation id. */
  readonly #readings = new Map<string, Reading>();
  /** By host uid. */
  readonly #convicted = new Map<string, Conviction[]>();
  /** Certificate → its documents. */
  readonly #documents = new Map<string, ErasureDocument[]>();
  /** Hosts whose clean began with the wish to read again at once, as "uid/run". */
  readonly #atOnce = new Set<string>();
  /** What was written down is lost: nobody knows what has to be read. */
  #wasRestored = false;
  #drivesRead = 0;
  #powerRead = 0;
  #imagesRead = 0;
  #workRead = 0;

  constructor(
    parts: JudgeParts,
    hosts: ReadonlyMap<string, JudgedHost>,
    found: (rule: string, text: string) => void,
  ) {
    this.#parts = parts;
    this.#hosts = hosts;
    this.#found = found;
  }

  /** An older state of the store was put back. */
  restored(): void {
    this.#wasRestored = true;
    this.#convicted.clear();
    this.#readings.clear();
    this.#atOnce.clear();
    this.#documents.clear();
  }

  /** Takes in a record of the older state. */
  reloaded(key: string, value: Uint8Array): void {
    if (!key.startsWith('erasureDocuments.')) return;
    const document = documentOf(value);
    if (document !== undefined) this.#keepDocument(document);
  }

  /** Takes in a written record. */
  note(key: string, value: Uint8Array | undefined): void {
    if (value === undefined) return;
    if (key.startsWith('erasureCertificates.')) this.#noteCertificate(key, value);
    if (key.startsWith('erasureDocuments.')) this.#noteDocument(value);
  }

  /** A host's record as it is now. */
  changed(before: store.HostRecord | undefined, record: store.HostRecord): void {
    this.#noteReading(record);
    this.#noteCited(record);
    if (before !== undefined) {
      this.#noteLostBoot(before, record);
      // The answer to a report may be lost: what its host's record says is taken in as well.
      if (hasFailedReading(before, record)) this.applied(before.operation?.operation?.id ?? '');
    }
    this.#noteSwitched(before, record);
    this.#judgeAtOnce(before, record);
    this.#judgeConvicted(record);
  }

  /** A runner's word about an operation is on its way up. */
  reported({ operationId, result }: agent.Report): void {
    const reading = this.#readings.get(operationId);
    if (result.case !== 'complete' && result.case !== 'failed') return;
    if (reading !== undefined) reading.result ??= result;
  }

  /** The control plane has answered that the result of this operation is taken in. */
  applied(operationId: OperationId): void {
    const reading = this.#readings.get(operationId);
    if (reading === undefined || reading.isTaken) return;
    reading.isTaken = true;
    const { result, hostUid, old, certificates } = reading;
    const isSaid = result?.case === 'failed' && !technical.has(result.value.type);
    // Of disks that cannot be read nothing is proved any more.
    if (isSaid) for (const serial of certificates.keys()) this.#used(serial);
    if (old.size === 0) return;
    const name = `${operationId} saw old data on ${[...old]}`;
    if (result?.case === 'complete') this.#found('E2', `${name} and says that it is complete`);
    if (!isSaid) return;
    const record = this.#recordOf(hostUid);
    if (record === undefined) return;
    for (const serial of old) {
      const certificate = certificates.get(serial) ?? '';
      const kinds = (this.#documents.get(certificate) ?? []).map(({ kind }) => kind);
      if (kinds.includes(ErasureDocumentKind.REVOCATION)) continue;
      this.#found('E2', `${name}, and ${certificate} is not revoked`);
    }
    const all = this.#convicted.get(hostUid) ?? [];
    const more = [...old].map((serial) => ({ serial, isWiped: false }));
    this.#convicted.set(hostUid, [...all, ...more]);
    this.#judgeConvicted(record);
  }

  look(): void {
    const { drives, power, images, work } = this.#parts.logs;
    for (; this.#powerRead < power.length; this.#powerRead++) {
      const event = power[this.#powerRead];
      if (event === undefined || event.by === 'bmc' || !event.on) continue;
      for (const { serial } of this.#drivesOf(event.machine)) this.#used(serial);
    }
    for (; this.#drivesRead < drives.length; this.#drivesRead++) {
      const event = drives[this.#drivesRead];
      if (event !== undefined) this.#takeDrive(event);
    }
    for (; this.#imagesRead < images.length; this.#imagesRead++) {
      const event = images[this.#imagesRead];
      if (event?.act === 'begun') this.#judgeImage(event);
      // What runs without a disk is use, too.
      if (event?.act !== 'fetched') continue;
      for (const { serial } of this.#drivesOf(event.machine)) this.#used(serial);
    }
    for (; this.#workRead < work.length; this.#workRead++) {
      const event = work[this.#workRead];
      if (event?.act !== 'begun' || event.machine === '') continue;
      for (const { serial } of this.#drivesOf(event.machine)) {
        if (!this.#isOfThisUse(event.machine, this.#storyOf(serial))) continue;
        this.#judgeUnread(event.machine, serial, 'a program begins');
      }
    }
  }

  /**
   * A run takes back what it counts as erased only when it has lost the boot that did it; so does
   * a run that goes on with a failed one.
   */
  #noteLostBoot(before: store.HostRecord, { certified, host }: store.HostRecord): void {
    const run = host?.status?.run;
    const isNext = before.host?.status?.run?.number !== run?.number;
    if (isNext && (run?.resumes ?? '') === '') return;
    const kept = new Set(certified.map(({ deviceKey }) => deviceKey));
    for (const { deviceKey } of before.certified) {
      if (!kept.has(deviceKey)) this.#used(deviceKey);
    }
  }

  /** Nobody can know any more what is on it, and its certificate stays unproved. */
  #used(serial: string): void {
    this.#storyOf(serial).certificate = undefined;
  }

  #drivesOf(machineName: string): readonly SimDrive[] {
    return this.#parts.machines.get(machineName)?.drives ?? [];
  }

  #takeDrive({ act, serial, machine, atMs }: DriveEvent): void {
    const story = this.#storyOf(serial);
    switch (act) {
      case 'challenge':
      case 'zeros':
      case 'format':
        if (this.#isOfThisUse(machine, story)) this.#judgeUnread(machine, serial, act);
        this.#written(serial, story, atMs);
        return;
      case 'settled':
      case 'osWrote':
        this.#written(serial, story, atMs);
        return;
      case 'powerLost':
        story.powerLostMs = atMs;
        return;
      // It starts anew by itself: what it boots nobody has ordered.
      case 'restarted':
        this.#used(serial);
        return;
      case 'openedToRead':
        story.triedMs = atMs;
        return;
      case 'readOld':
        this.#readingOn(machine)?.old.add(serial);
        return;
      case 'readClean':
        if (story.writtenMs < story.powerLostMs) story.provedMs = atMs;
        this.#acquit(serial);
        return;
      case 'returned':
        return;
    }
  }

  #written(serial: string, story: DiskStory, atMs: number): void {
    story.writtenMs = atMs;
    story.certificate = undefined;
    for (const all of this.#convicted.values()) {
      for (const each of all) each.isWiped ||= each.serial === serial;
    }
  }

  /** Read clean after a new wipe and a loss of power: the fault may go. */
  #acquit(serial: string): void {
    const { writtenMs, powerLostMs } = this.#storyOf(serial);
    if (writtenMs >= powerLostMs) return;
    for (const [uid, all] of this.#convicted) {
      const left = all.filter((each) => each.serial !== serial || !each.isWiped);
      this.#convicted.set(uid, left);
    }
  }

  /** E3 */
  #judgeUnread(machineName: string, serial: string, what: string): void {
    const { certificate, powerLostMs, triedMs, provedMs, writtenMs } = this.#storyOf(serial);
    if (this.#wasRestored || certificate?.isCited !== true || provedMs > writtenMs) return;
    const isDue = writtenMs < powerLostMs && triedMs < powerLostMs;
    if (!isDue || this.#hostOn(machineName)?.host?.uid !== certificate.hostUid) return;
    const text = `${machineName}: ${what}, and ${serial} was not read since it lost its power`;
    this.#found('E3', text);
  }

  /** Whether the disk's certificate still speaks for it, as far as the host says. */
  #isOfThisUse(machineName: string, { certificate }: DiskStory): boolean {
    const { useEpoch = 0n } = this.#hostOn(machineName)?.host?.status ?? {};
    return certificate?.useEpoch === Number(useEpoch);
  }

  /** E4 */
  #judgeImage({ machine, atMs }: ImageEvent): void {
    for (const [at, drive] of this.#drivesOf(machine).entries()) {
      const { serial } = drive;
      const story = this.#storyOf(serial);
      const isProved = story.provedMs > story.writtenMs;
      this.#judgeUnread(machine, serial, 'an image is written');
      // An image goes onto the first disk.
      if (at === 0) this.#written(serial, story, atMs);
      if (this.#wasRestored || !drive.hasReturned || isProved) continue;
      this.#found('E4', `${machine} gets an image, and data has returned on ${serial}`);
    }
  }

  #noteCertificate(key: string, value: Uint8Array): void {
    const { statement } = fromBinary(store.CertificateRecordSchema, value);
    const { device, host, useEpoch } = JSON.parse(new TextDecoder().decode(statement)) as {
      readonly device: { readonly serial: string };
      readonly host: { readonly uid: string };
      readonly useEpoch: number;
    };
    // As records cite it: a key has the host's uid as a word of its own.
    const name = key.replace('.', '/').replace('.', '-');
    const certificate = { name, hostUid: host.uid, useEpoch, isCited: false };
    this.#storyOf(device.serial).certificate = certificate;
  }

  /**
   * A certificate is stored before the record that cites it. Where the control plane dies between
   * the two and the report does not come again, no record ever counts the disk as erased.
   */
  #noteCited({ certified }: store.HostRecord): void {
    for (const { deviceKey, certificate } of certified) {
      const known = this.#storyOf(deviceKey).certificate;
      if (known?.name === certificate) known.isCited = true;
    }
  }

  /** E1 */
  #noteDocument(value: Uint8Array): void {
    const document = documentOf(value);
    if (document === undefined) return;
    const { certificate, kind, serial } = document;
    if (this.#keepDocument(document).some((each) => each.kind !== kind)) {
      this.#found('E1', `${certificate} has an addendum and a revocation`);
    }
    if (kind !== ErasureDocumentKind.ADDENDUM) return;
    const { writtenMs, provedMs } = this.#storyOf(serial);
    if (provedMs > writtenMs) return;
    const text = `${certificate} has an addendum, and ${serial} was not read clean after power-off`;
    this.#found('E1', text);
  }

  /** Gives all documents of its certificate. */
  #keepDocument(document: ErasureDocument): readonly ErasureDocument[] {
    const all = [...(this.#documents.get(document.certificate) ?? []), document];
    this.#documents.set(document.certificate, all);
    return all;
  }

  /** Notes which disks an order is to read again. */
  #noteReading({ operation: operationRecord }: store.HostRecord): void {
    const operation = operationRecord?.operation;
    if (operation?.kind.case !== 'runStep' || this.#readings.has(operation.id)) return;
    const { step, devices } = operation.kind.value;
    if (step !== verifyErasedStep) return;
    const certificates = new Map(
      devices.map(({ device, certificate }) => [device?.serial ?? '', certificate]),
    );
    const { hostUid, id } = operation;
    this.#readings.set(id, {
      hostUid,
      certificates,
      old: new Set(),
      result: undefined,
      isTaken: false,
    });
  }

  #noteSwitched(before: store.HostRecord | undefined, record: store.HostRecord): void {
    const run = record.host?.status?.run;
    if (run === undefined || !switching.has(run.kind)) return;
    if (run.number === before?.host?.status?.run?.number) return;
    const machine = machineOf(this.#parts.machines, { key: '', revision: 0, record });
    for (const { serial } of machine?.drives ?? []) this.#used(serial);
  }

  /** E2 */
  #judgeConvicted({ host }: store.HostRecord): void {
    const { state, faults = [] } = host?.status ?? {};
    const convicted = this.#present(host?.uid ?? '');
    if (convicted.length === 0) return;
    const serials = convicted.map(({ serial }) => serial);
    if (!hasFault(faults, 'dataReturned')) {
      this.#found('E2', `${host?.name}: data returned on ${serials}, and no fault stands`);
    }
    const left = convicted.filter(({ isWiped }) => !isWiped);
    if (left.length === 0 || state !== HostState.AVAILABLE) return;
    this.#found('E2', `${host?.name} is available, and data returned on ${serials}`);
  }

  /** A disk that was taken out is no reason for anything. */
  #present(uid: string): Conviction[] {
    const all = this.#convicted.get(uid) ?? [];
    const serials = new Set(
      [...this.#parts.machines.values()].flatMap(({ drives }) => drives.map((each) => each.serial)),
    );
    return all.filter(({ serial }) => serials.has(serial));
  }

  /** E5 */
  #judgeAtOnce(before: store.HostRecord | undefined, record: store.HostRecord): void {
    const { spec, status, uid = '' } = record.host ?? {};
    const run = status?.run;
    const was = before?.host?.status;
    if (run === undefined) return;
    const name = `${uid}/${run.number}`;
    const wants = spec?.cleaning?.powerCycleCheck === PowerCycleCheck.IMMEDIATE;
    if (run.number !== was?.run?.number && isPlainClean(run) && wants) this.#atOnce.add(name);
    const isNew = was?.state !== HostState.AVAILABLE && status?.state === HostState.AVAILABLE;
    if (isNew && this.#atOnce.has(name) && run.phase === RunPhase.ENDED) this.#judgeProved(record);
  }

  /** Each disk of the host was read after the last power cycle. */
  #judgeProved(record: store.HostRecord): void {
    const machine = machineOf(this.#parts.machines, { key: '', revision: 0, record });
    if (machine === undefined || machine.unseen) return;
    for (const { serial } of machine.drives) {
      const { writtenMs, provedMs } = this.#storyOf(serial);
      if (provedMs > writtenMs) continue;
      const name = record.host?.name;
      this.#found('E5', `${name} is available, and ${serial} was not read after a power cycle`);
    }
  }

  #readingOn(machineName: string): Reading | undefined {
    const id = this.#hostOn(machineName)?.operation?.operation?.id ?? '';
    return this.#readings.get(id);
  }

  #hostOn(machineName: string): store.HostRecord | undefined {
    const isOf = (machine: SimMachine | undefined) => machine?.name === machineName;
    const hosts = [...this.#hosts.values()];
    return hosts.find((host) => isOf(machineOf(this.#parts.machines, host)))?.record;
  }

  #recordOf(uid: string): store.HostRecord | undefined {
    return [...this.#hosts.values()].find(({ record }) => record.host?.uid === uid)?.record;
  }

  #storyOf(serial: string): DiskStory {
    const known = this.#disks.get(serial);
    if (known !== undefined) return known;
    const story = { writtenMs: -1, powerLostMs: -1, triedMs: -1, provedMs: -1 };
    const fresh: DiskStory = { ...story, certificate: undefined };
    this.#disks.set(serial, fresh);
    return fresh;
  }
}

/** What asks for nothing but what the policy says. */
function isPlainClean({ kind, manual }: Run): boolean {
  return kind === RunKind.CLEAN && !manual;
}

/** Whether a change says that the reading under way has failed. */
function hasFailedReading(before: store.HostRecord, { host }: store.HostRecord): boolean {
  const was = before.host?.status?.run;
  const run = host?.status?.run;
  if (was === undefined || was.number !== run?.number) return false;
  const step = run.steps[was.currentStep];
  return step?.name === verifyErasedStep && step.state === StepState.FAILED;
}
