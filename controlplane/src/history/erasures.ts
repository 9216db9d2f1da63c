/** ErasureCertificateService: signed documents about erasures, exactly as they were signed. */
import { create, fromBinary, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type ErasureStatement,
  joinEvidence,
  parseStatement,
  ShapeError,
  separatedEvidenceSha256,
} from '@rackwright/erasure';
import {
  type BoundService,
  bind,
  type ErasureCertificate,
  ErasureCertificateSchema,
  ErasureCertificateService,
  type ErasureDocument,
  ErasureDocumentKind,
  type HostUid,
  notFound,
  PowerCycleProof,
  store as wire,
} from '@rackwright/messages';
import { type Entry, type StateStore, storeKey } from '@rackwright/store';
import { nameProblem, requireName } from '../call/names.ts';
import { listPage } from '../call/paging.ts';
import type { RpcDependencies } from '../call/ports.ts';
import { Violations } from '../call/violations.ts';
import { checkEnum } from '../host/spec/host-spec.ts';
import { idOf, orUnavailable, readRecord } from '../records/index.ts';

const certificates = 'erasureCertificates';
const documents = 'erasureDocuments';

/** The service over these dependencies. */
export function createErasureService(deps: RpcDependencies): BoundService {
  const { store, identity } = deps;
  return bind(ErasureCertificateService, {
    getErasureCertificate: async ({ name }) => {
      const id = requireName(certificates, name);
      const parts = certificateParts(id);
      if (parts === undefined) throw notFound(name);
      const key = storeKey(certificates, parts.hostUid, parts.rest);
      const kept = await readRecord(store, wire.CertificateRecordSchema, key);
      if (kept === undefined) throw notFound(name);
      return present(store, parts, kept.record);
    },
    listErasureCertificates: async (request) => {
      const { host } = request;
      checkHost(host);
      const page = await listPage(
        store,
        await prefixesOf(store, certificates, host),
        request,
        host,
        certificateAt,
        isSigned,
        ({ record }) => record.statement.length + Math.ceil(record.evidenceBytes * base64Growth),
      );
      const presented = page.items.map(({ parts, record }) => present(store, parts, record));
      const erasureCertificates = await Promise.all(presented);
      return { erasureCertificates, nextPageToken: page.nextPageToken };
    },
    getErasureDocument: async ({ name }) => {
      const parts = documentParts(requireName(documents, name));
      if (parts === undefined) throw notFound(name);
      const key = storeKey(documents, parts.hostUid, parts.rest);
      const kept = await readRecord(store, wire.ErasureDocumentRecordSchema, key);
      const document = kept?.record.document;
      if (document === undefined) throw notFound(name);
      return document;
    },
    listErasureDocuments: async (request) => {
      const { host, kind } = request;
      checkHost(host, kind);
      const prefixes = await prefixesOf(store, documents, host);
      const read = ({ value }: Entry): ErasureDocument | undefined => {
        const { document } = fromBinary(wire.ErasureDocumentRecordSchema, value);
        const isWanted = kind === ErasureDocumentKind.UNSPECIFIED || document?.kind === kind;
        return isWanted ? document : undefined;
      };
      const filter = `${host} ${kind}`;
      const page = await listPage(store, prefixes, request, filter, read, isSigned);
      return { erasureDocuments: [...page.items], nextPageToken: page.nextPageToken };
    },
    getTrust: () => ({
      erasurePublicKeyPem: identity.erasure.publicKeyPem,
      caCertificatePem: identity.caCertificatePem,
    }),
  });
}

/** The growth from bytes to base64. */
const base64Growth = 4 / 3;

function checkHost(
  host: string,
  kind: ErasureDocumentKind = ErasureDocumentKind.UNSPECIFIED,
): void {
  const violations = new Violations();
  if (host !== '') violations.addIf('host', nameProblem('hosts', host));
  checkEnum('kind', ErasureDocumentKind, kind, violations);
  violations.throwIfAny();
}

/**
 * The prefixes of all signed documents of one host: below its uid, and below the uids of earlier
 * hosts of its name. Reads nothing of other hosts.
 */
async function prefixesOf(
  store: StateStore,
  collection: string,
  host: string,
): Promise<readonly string[]> {
  if (host === '') return [collection];
  const { entries } = await orUnavailable(store.list(storeKey('erasureOwners', idOf(host))));
  return entries.map(({ key }) => storeKey(collection, key.split('.')[2] ?? '')).sort();
}

function isSigned(key: string): boolean {
  return key.split('.').length === signedSegments;
}

/** Collection, host uid, and the rest of the id. */
const signedSegments = 3;

/** The parts of a record's key. */
interface Parts {
  readonly hostUid: HostUid;
  readonly rest: string;
}

const ofInspection = String.raw`\d+-\d+-\d+-manifest`;
const ofCertificate = String.raw`\d+-\d+-\d+-\d+-[0-9a-f]{8}`;
const certificateId = new RegExp(`^(.+)-(${ofCertificate})$`);
const documentId = new RegExp(`^(.+)-(${ofInspection}|${ofCertificate}-(?:addendum|revocation))$`);

function certificateAt({ key, value }: Entry) {
  const [, hostUid = '', rest = ''] = key.split('.');
  return { parts: { hostUid, rest }, record: fromBinary(wire.CertificateRecordSchema, value) };
}

/** "HOST_UID-RUN-STEP-ATTEMPT-NUMBER-DIGEST" */
function certificateParts(id: string): Parts | undefined {
  const [, hostUid, rest] = certificateId.exec(id) ?? [];
  return hostUid === undefined || rest === undefined ? undefined : { hostUid, rest };
}

/** "HOST_UID-RUN-STEP-ATTEMPT-manifest", "HOST_UID-RUN-STEP-ATTEMPT-NUMBER-DIGEST-addendum" */
function documentParts(id: string): Parts | undefined {
  const [, hostUid, rest] = documentId.exec(id) ?? [];
  return hostUid === undefined || rest === undefined ? undefined : { hostUid, rest };
}

async function present(
  store: StateStore,
  parts: Parts,
  record: wire.CertificateRecord,
): Promise<ErasureCertificate> {
  const { signature, createTime, host } = record;
  const statement = await wholeStatement(store, parts, record.statement);
  return create(ErasureCertificateSchema, {
    name: `${certificates}/${parts.hostUid}-${parts.rest}`,
    statement,
    signature,
    host,
    ...(createTime === undefined ? {} : { createTime }),
    ...derived(statement),
    powerCycleProof: await proofOf(store, parts),
  });
}

/** The exact bytes that were signed; the evidence of a step is kept once for all its devices. */
async function wholeStatement(
  store: StateStore,
  { hostUid }: Parts,
  kept: Uint8Array,
): Promise<Uint8Array> {
  const sha256 = separatedEvidenceSha256(kept);
  if (sha256 === undefined) return kept;
  const key = storeKey('erasureEvidence', hostUid, sha256);
  const evidence = await readRecord(store, wire.EvidenceRecordSchema, key);
  return evidence === undefined ? kept : joinEvidence(kept, evidence.record.payload);
}

/** Whether a power cycle has since confirmed that the device is erased. */
async function proofOf(store: StateStore, { hostUid, rest }: Parts): Promise<PowerCycleProof> {
  const has = async (document: 'addendum' | 'revocation') => {
    const found = await store.get(storeKey(documents, hostUid, `${rest}-${document}`));
    return found.kind === 'found';
  };
  if (await has('revocation')) return PowerCycleProof.REFUTED;
  return (await has('addendum')) ? PowerCycleProof.PROVED : PowerCycleProof.NOT_YET;
}

/** Fields computed from the statement; none for a format of another version that we cannot read. */
function derived(bytes: Uint8Array): MessageInitShape<typeof ErasureCertificateSchema> {
  let statement: ErasureStatement;
  try {
    statement = parseStatement(bytes);
  } catch (error) {
    if (error instanceof ShapeError) return {};
    throw error;
  }
  const { host, device, method, level, useEpoch } = statement;
  return {
    hostUid: host.uid,
    deviceSerial: device.serial,
    deviceModel: device.model,
    method,
    level: level ?? '',
    useEpoch: BigInt(useEpoch),
  };
}
