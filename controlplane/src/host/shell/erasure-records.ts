/**
 * Signs and writes what an erasure leaves: certificates, the evidence that they share, and other
 * documents. All are create-only, under names that follow from what they are about.
 *
 * Invariants:
 * 1. What stands is never replaced. Whoever writes one again, after a crash or as another replica,
 *    finds it. Where it says something else, because somebody has changed the host meanwhile, the
 *    turn is decided anew by what stands (`StatementsStand`). No record cites an addendum or a
 *    revocation: the first one stands, and a disk may be read again after a turn that was lost.
 * 2. Evidence is durable before a certificate that names it by its digest.
 * 3. All lies below the uid of its host. What leads there from the host's name is durable before
 *    any of it, so that nobody has to look through what belongs to other hosts.
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

/** Statements of a lost turn stand under ids of this one, and say something else. */
export class StatementsStand extends Error {
  override readonly name = 'StatementsStand';
  /** By the ids of the drafts. */
  readonly statements: ReadonlyMap<string, Uint8Array>;

  constructor(statements: ReadonlyMap<string, Uint8Array>) {
    super(`other statements stand already: ${[...statements.keys()].join(', ')}`);
    this.statements = statements;
  }
}

type Writer = Pick<
  HostsDependencies,
  'store' | 'random' | 'clock' | 'signStatement' | 'crashPoint'
>;

export async function writeCertificates(
  deps: Writer,
  hostUid: HostUid,
  certificates: readonly CertificateDraft[],
): Promise<void> {
  await writeOwner(deps, certificates[0]?.host, hostUid);
  const kept = new Set<string>();
  const standing = new Map<string, Uint8Array>();
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
    const stands = found?.record.statement;
    // The id follows from the evidence: both must be about the same.
    if (stands !== undefined && !Buffer.from(stands).equals(rest)) {
      standing.set(id, joinEvidence(stands, evidence));
    }
  }
  if (standing.size > 0) throw new StatementsStand(standing);
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
    const stands = found?.record.document?.statement;
    if (stands === undefined || Buffer.from(stands).equals(statement)) continue;
    throw new StatementsStand(new Map([[id, stands]]));
  }
}

/** Create-only: whoever comes second finds what he wanted to write. */
async function writeOwner(deps: Writer, host: string | undefined, hostUid: HostUid): Promise<void> {
  if (host === undefined) return;
  const key = storeKey('erasureOwners', idOf(host), hostUid);
  const record = create(wire.ErasureOwnerRecordSchema, { host });
  await writeRecord(deps, wire.ErasureOwnerRecordSchema, key, record, 'absent');
}
