/**
 * The manifest of a host: every storage device that kernel, bus, firmware or BMC reports, and the
 * decision about each. It is written when a clean has inspected the erased disks again; no clean
 * succeeds without a manifest that has no gap (H6).
 */
import { timestampDate } from '@bufbuild/protobuf/wkt';
import {
  buildManifest,
  type DeviceFacts,
  decideSigns,
  deviceFactsOf,
  deviceIdentity,
  type ErasureManifest,
  type ScopeDecision,
  ShapeError,
  statementSha256,
  storageSignsOf,
} from '@rackwright/erasure';
import {
  ErasureDocumentKind,
  ErasureLevel,
  type Inventory,
  type RunFailure,
} from '@rackwright/messages';
import { activeRun, type Pass, type PassView } from '../pass/pass.ts';
import { invalidResult } from '../pass/step-failure.ts';
import { decideDevices } from './device-plan.ts';
import { bmcFindings } from './gaps.ts';

type Entry = ErasureManifest['devices'][number];
type Source = Entry['sources'][number];

/** Writes the manifest of this inventory, or returns why there can be none. */
export function writeManifest(pass: Pass, inventory: Inventory): RunFailure | undefined {
  const { host, status, record } = pass;
  const before = record.lastManifestSha256;
  try {
    const attempt = record.operation?.operation?.id ?? `${host.uid}/0/0/0`;
    const id = `${attempt.replaceAll('/', '-')}-manifest`;
    const devices = [devicesOf(pass, inventory), signsOf(inventory), drivesOf(pass, inventory)];
    const statement =
      pass.snapshot.keptStatements?.get(id) ??
      buildManifest({
        host: { name: host.name, uid: host.uid },
        useEpoch: Number(status.useEpoch),
        createdAt: timeOf(pass, inventory),
        runnerSession: inventory.runnerSession,
        devices: devices.flat(),
        previousSha256: before.length === 0 ? null : Buffer.from(before).toString('hex'),
      });
    const document = {
      id,
      kind: ErasureDocumentKind.MANIFEST,
      host: host.name,
      hostUid: host.uid,
      certificates: record.certified.map(({ certificate }) => certificate),
      useEpoch: status.useEpoch,
      statement,
    };
    record.lastManifestSha256 = Buffer.from(statementSha256(statement), 'hex');
    pass.effects.push({ kind: 'document', documents: [document] });
    return undefined;
  } catch (error) {
    if (!(error instanceof ShapeError)) throw error;
    return invalidResult(`the host's storage fits into no manifest: ${error.message}`);
  }
}

/** Independent of the replica that writes it: the runner's clock, or the start of the run. */
function timeOf({ status }: PassView, { collectedAt }: Inventory): string {
  const time = collectedAt ?? activeRun(status)?.startTime;
  return time === undefined ? new Date(0).toISOString() : timestampDate(time).toISOString();
}

function devicesOf(pass: PassView, inventory: Inventory): Entry[] {
  const weakEnough = pass.spec.cleaning?.level === ErasureLevel.METADATA_ONLY;
  const found = bmcFindings(pass, inventory.devices.map(deviceFactsOf));
  const byBmc = new Set(found.flatMap((each) => (each.kind === 'accounted' ? [each.device] : [])));
  const byName = new Set([...byBmc].map(({ name }) => name));
  return decideDevices(inventory, { metadataOnly: weakEnough }, pass.spec.cleaning).map(
    (decision) => {
      const { name, model, serial, wwn, sizeBytes } = decision.device;
      const sources: Source[] = byName.has(name) ? ['kernel', 'bmc'] : ['kernel'];
      return {
        ...{ sources, kind: 'blockDevice', name, model, serial, wwn, sizeBytes },
        decision: decisionOf(pass, decision),
      };
    },
  );
}

/** The decision about a block device; a full erasure counts before a metadata erasure. */
function decisionOf({ record, status }: PassView, decision: ScopeDecision): Entry['decision'] {
  if (decision.kind === 'listed') return { kind: 'listed', reason: decision.reason };
  if (decision.kind === 'refused') {
    return { kind: 'refused', reason: decision.reason, action: decision.action };
  }
  const key = deviceIdentity(decision.device);
  const own = record.certified.filter(
    ({ deviceKey, useEpoch }) => deviceKey === key && useEpoch === status.useEpoch,
  );
  const found = own.findLast(({ metadataOnly }) => !metadataOnly) ?? own.at(-1);
  if (found === undefined || found.statementSha256.length === 0) {
    const reason = 'it has no certificate of this use';
    return { kind: 'gap', reason, action: 'clean the host again' };
  }
  return {
    kind: 'erased',
    certificate: found.certificate,
    certificateSha256: Buffer.from(found.statementSha256).toString('hex'),
  };
}

function signsOf(inventory: Inventory): Entry[] {
  const devices = inventory.devices.map(deviceFactsOf);
  return decideSigns(storageSignsOf(inventory), devices).map((decision): Entry => {
    const { source, kind, name, model, serial, sizeBytes } = decision.sign;
    const named = { sources: [source], kind, name, model, serial, wwn: '', sizeBytes };
    switch (decision.kind) {
      case 'accounted':
        return { ...named, decision: listedAs(`it is seen as ${decision.by.join(', ')}`) };
      case 'decided':
        return { ...named, decision: listedAs(decision.reason) };
      case 'gap': {
        const { reason, action } = decision;
        return { ...named, decision: { kind: 'gap', reason, action } };
      }
    }
  });
}

/** Drives of the BMC that match no device of the inventory. */
function drivesOf(pass: PassView, inventory: Inventory): Entry[] {
  return bmcFindings(pass, inventory.devices.map(deviceFactsOf)).flatMap((finding): Entry[] => {
    const { name, model, serial, sizeBytes } = finding.drive;
    const named = { sources: ['bmc' as const], kind: 'drive', name, model, serial, sizeBytes };
    const entry = (decision: Entry['decision']): Entry[] => [{ ...named, wwn: '', decision }];
    switch (finding.kind) {
      case 'accounted':
        return [];
      case 'notStorage':
        return entry(listedAs(finding.reason));
      case 'behindVolume':
        return entry(listedAs(`by the policy a part of a volume: ${volumesOf(finding.volumes)}`));
      case 'gap':
        return entry({ kind: 'gap', reason: finding.reason, action: finding.action });
    }
  });
}

function volumesOf(volumes: readonly DeviceFacts[]): string {
  return volumes.map((volume) => deviceIdentity(volume) || volume.name).join(', ');
}

function listedAs(reason: string): Entry['decision'] {
  return { kind: 'listed', reason };
}
