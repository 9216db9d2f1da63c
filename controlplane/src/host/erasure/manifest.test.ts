/** The manifest of a host: each reported storage device, with the decision about it. */
import { create } from '@bufbuild/protobuf';
import { type ErasureManifest, parseDocument } from '@rackwright/erasure';
import {
  agent,
  BmcDriveListSchema,
  ErasureDocumentKind,
  StorageDeviceSchema,
  StorageSignKind,
  StorageSignSchema,
  StorageSource,
  Transport,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import type { HostEffect } from '../pass/types.ts';
import { bench, driveToErase, erased, inspected, virtioDisk } from '../testing/bench.ts';

const optical = create(StorageDeviceSchema, {
  ...{ device: 'sr0', transport: Transport.OPTICAL, serial: 'DVD-1', sizeBytes: 1_024n },
});
const flash = create(StorageSignSchema, {
  ...{ source: StorageSource.KERNEL, kind: StorageSignKind.FLASH_CHIP, name: 'mtd0' },
});
const drive = create(StorageSignSchema, {
  ...{ source: StorageSource.BMC, kind: StorageSignKind.DRIVE, name: 'Bay 1', serial: 'DISK-1' },
});

/** A clean that has erased its disk, and the effects of its next inspection. */
function lookedAgain(): readonly HostEffect[] {
  const host = bench();
  driveToErase(host);
  const evidence = host.evidence([erased(virtioDisk)]);
  host.report({ case: 'complete', value: create(agent.CompleteSchema, { evidence }) });
  const bmcDrives = create(BmcDriveListSchema, {
    ...{ available: true, complete: true, drives: [drive] },
  });
  const look = inspected([virtioDisk, optical]);
  if (look.case === 'complete' && look.value.observations !== undefined) {
    look.value.observations.bmcDrives = bmcDrives;
    look.value.observations.inventory?.storageSigns.push(flash);
  }
  return host.report(look);
}

function manifestOf(effects: readonly HostEffect[]): ErasureManifest {
  const [document] = effects.flatMap((each) => (each.kind === 'document' ? each.documents : []));
  expect(document?.kind).toBe(ErasureDocumentKind.MANIFEST);
  expect(document?.id).toMatch(/^u1-\d+-\d+-\d+-manifest$/);
  const said = parseDocument(document?.statement ?? new Uint8Array());
  if (said.kind !== 'manifest') throw new Error('no manifest');
  return said.manifest;
}

test('a clean writes what it has erased, what is left alone, and why', () => {
  const manifest = manifestOf(lookedAgain());
  expect(manifest).toMatchObject({ complete: true, useEpoch: 1, host: { uid: 'u1' } });
  expect(manifest.devices).toMatchObject([
    { serial: 'DISK-1', sources: ['kernel', 'bmc'], decision: { kind: 'erased' } },
    { serial: 'DVD-1', decision: { kind: 'listed', reason: 'an optical drive' } },
    { name: 'mtd0', decision: { kind: 'listed' } },
  ]);
});

test('equal decisions give equal manifests', () => {
  expect(manifestOf(lookedAgain()).createdAt).toBe(manifestOf(lookedAgain()).createdAt);
});
