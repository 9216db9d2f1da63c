/**
 * Signs and writes what an erasure leaves: certificates, the evidence that they share, and other
 * documents. All are create-only, under names that follow from what they are about.
 *
 * Invariants:
 * 1. Whoever writes one again, after a crash or as another replica, writes the same; a record that
 *    says something else is never replaced, and stops the turn. But a disk may be read again after
 *    a turn that was lost, or overtaken, once its addendum or revocation stood: that one stands.
 * 2. Evidence is durable before a certificate that names it by its digest.
 * 3. All lies below the uid of its host. What leads there from the host's name is durable before
 *    any of it, so that nobody has to look through what belongs to other hosts.
 */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ErasureDocumentKind, ErasureDocumentSchema, store as wire } from '@rackwright/api';
import { separateEvidence } from '@rackwright/erasure';
import { storeKey } from '@rackwright/store';
import { idOf, readShared, writeRecord } from '../../records/index.ts';
import type { CertificateDraft, DocumentDraft } from '../turn/types.ts';
import type { HostsDependencies } from './dependencies.ts';

type Writer = Pick<
  HostsDependencies,
  'store' | 'random' | 'clock' | 'signStatement' | 'crashPoint'
>;

export async function writeCertificates(
  deps: Writer,
  hostUid: string,
  certificates: readonly CertificateDraft[],
): Promise<void> {
  await writeOwner(deps, certificates[0]?.host, hostUid);
  const kept = new Set<string>();
  for (const { id, host, statement } of certificates) {
    const { rest, evidence, evidenceSha256 } = separateEvidence(statement);
    if (!kept.has(evidenceSha256)) {
      const key = storeKey('erasureEvidence', hostUid, evidenceSha256);
      const record = create(wire.EvidenceRecordSchema, { payload: evidence });
      await writeRecord(deps, wire.EvidenceRecordSchema, key, record, 'absent');
      kept.add(evidenceSha256);
    }
    const record = create(wire.CertificateRecordSchema, {
      statement: rest,
      signature: deps.signStatement(statement),
      createTime: timestampFromMs(deps.clock.nowMs()),
      host,
      evidenceBytes: evidence.length,
    });
    const key = storeKey('erasureCertificates', hostUid, id.slice(hostUid.length + 1));
    const written = await writeRecord(deps, wire.CertificateRecordSchema, key, record, 'absent');
    if (written.kind !== 'conflict') continue;
    const found = await readShared(deps.store, wire.CertificateRecordSchema, key);
    mustBeSame(key, found?.record.statement, rest);
  }
}

/** Where a process may be killed once a document of each kind is durable. */
const storedPoints: { readonly [kind: number]: string } = {
  [ErasureDocumentKind.MANIFEST]: 'cp.manifestStored',
  [ErasureDocumentKind.ADDENDUM]: 'cp.addendumStored',
  [ErasureDocumentKind.REVOCATION]: 'cp.revocationStored',
};

export async function writeDocuments(
  deps: Writer,
  documents: readonly DocumentDraft[],
): Promise<void> {
  await writeOwner(deps, documents[0]?.host, documents[0]?.hostUid ?? '');
  for (const { id, hostUid, certificates, statement, ...draft } of documents) {
    const document = create(ErasureDocumentSchema, {
      ...draft,
      name: `erasureDocuments/${id}`,
      createTime: timestampFromMs(deps.clock.nowMs()),
      signature: deps.signStatement(statement),
      hostUid,
      statement,
      certificates: [...certificates],
    });
    const record = create(wire.ErasureDocumentRecordSchema, { document });
    const key = storeKey('erasureDocuments', hostUid, id.slice(hostUid.length + 1));
    const written = await writeRecord(
      deps,
      wire.ErasureDocumentRecordSchema,
      key,
      record,
      'absent',
    );
    deps.crashPoint(storedPoints[draft.kind] ?? 'cp.documentStored');
    if (written.kind !== 'conflict' || draft.kind !== ErasureDocumentKind.MANIFEST) continue;
    const found = await readShared(deps.store, wire.ErasureDocumentRecordSchema, key);
    mustBeSame(key, found?.record.document?.statement, statement);
  }
}

/** Create-only: whoever comes second finds what he wanted to write. */
async function writeOwner(deps: Writer, host: string | undefined, hostUid: string): Promise<void> {
  if (host === undefined) return;
  const key = storeKey('erasureOwners', idOf(host), hostUid);
  const record = create(wire.ErasureOwnerRecordSchema, { host });
  await writeRecord(deps, wire.ErasureOwnerRecordSchema, key, record, 'absent');
}

/** A turn before a crash may have written it already: then it says the same. */
function mustBeSame(key: string, found: Uint8Array | undefined, wanted: Uint8Array): void {
  if (found !== undefined && Buffer.from(found).equals(wanted)) return;
  throw new Error(`${key} holds another statement than the one to be written`);
}
