/**
 * Signs and writes the results of an erasure: certificates, their shared evidence, and other
 * documents. All are create-only, under names that follow from their subject.
 *
 * Invariants:
 * 1. An existing document is never replaced. A repeated write, after a crash or by another replica,
 *    finds it. If its content differs, because the host was changed in the meantime, the pass is
 *    decided again with the existing one (`ExistingStatements`). No record cites an addendum or a
 *    revocation: the first one stays, and a disk may be read again after a lost pass.
 * 2. Evidence is durable before a certificate that names it by its digest.
 * 3. All documents are below the uid of their host. The reference from the host's name to the uid
 *    is durable before any of them, so that a search never reads the documents of other hosts.
 */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { joinEvidence, separateEvidence } from '@rackwright/erasure';
import {
  ErasureDocumentKind,
  ErasureDocumentSchema,
  type HostUid,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { idOf, readShared, writeRecord } from '../../records/index.ts';
import type { CertificateDraft, DocumentDraft } from '../pass/types.ts';
import type { HostsDependencies } from './dependencies.ts';

/**
 * Statements of a lost pass that have the ids of this one and a different content, by the ids of
 * the drafts.
 */
export type ExistingStatements = ReadonlyMap<string, Uint8Array>;

type Writer = Pick<
  HostsDependencies,
  'store' | 'random' | 'clock' | 'signStatement' | 'crashPoint'
>;

export async function writeCertificates(
  deps: Writer,
  hostUid: HostUid,
  certificates: readonly CertificateDraft[],
): Promise<ExistingStatements> {
  await writeOwner(deps, certificates[0]?.host, hostUid);
  const kept = new Set<string>();
  const existing = new Map<string, Uint8Array>();
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
    const stored = found?.record.statement;
    // The id follows from the evidence: both must have the same content.
    if (stored !== undefined && !Buffer.from(stored).equals(rest)) {
      existing.set(id, joinEvidence(stored, evidence));
    }
  }
  return existing;
}

/** Crash points after a document of each kind is durable. */
const storedPoints: { readonly [kind: number]: string } = {
  [ErasureDocumentKind.MANIFEST]: 'cp.manifestStored',
  [ErasureDocumentKind.ADDENDUM]: 'cp.addendumStored',
  [ErasureDocumentKind.REVOCATION]: 'cp.revocationStored',
};

export async function writeDocuments(
  deps: Writer,
  documents: readonly DocumentDraft[],
): Promise<ExistingStatements> {
  const existing = new Map<string, Uint8Array>();
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
    const stored = found?.record.document?.statement;
    if (stored === undefined || Buffer.from(stored).equals(statement)) continue;
    existing.set(id, stored);
  }
  return existing;
}

/** Create-only: a second writer finds the content that it wanted to write. */
async function writeOwner(deps: Writer, host: string | undefined, hostUid: HostUid): Promise<void> {
  if (host === undefined) return;
  const key = storeKey('erasureOwners', idOf(host), hostUid);
  const record = create(wire.ErasureOwnerRecordSchema, { host });
  await writeRecord(deps, wire.ErasureOwnerRecordSchema, key, record, 'absent');
}
