/** ErasureCertificateService: what was signed about erasures, exactly as it was signed. */
import { create, fromBinary, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type BoundService,
  bind,
  type ErasureCertificate,
  ErasureCertificateSchema,
  ErasureCertificateService,
  type ErasureDocument,
  ErasureDocumentKind,
  notFound,
  PowerCycleProof,
  store as wire,
} from '@rackwright/api';
import {
  type ErasureStatement,
  joinEvidence,
  parseStatement,
  ShapeError,
  separatedEvidenceSha256,
} from '@rackwright/erasure';
import { type Entry, type StateStore, storeKey } from '@rackwright/store';
import { idOf, readRecord } from '../../records/index.ts';
import { nameProblem, requireName } from '../call/names.ts';
import { listPage } from '../call/paging.ts';
import type { RpcDependencies } from '../call/ports.ts';
import { Violations } from '../call/violations.ts';
import { checkEnum } from '../spec/host-spec.ts';

const certificates = 'erasureCertificates';
const documents = 'erasureDocuments';

/** The service over these dependencies. */
export function createErasureService(deps: RpcDependencies): BoundService {
  const { store, identity } = deps;
  return bind(ErasureCertificateService, {
    getErasureCertificate: async ({ name }) => {
      const id = requireName(certificates, name);
      const key = storeKey(certificates, id);
      const kept = await readRecord(store, wire.CertificateRecordSchema, key);
      if (kept === undefined) throw notFound(name);
      return present(store, id, kept.record);
    },
    listErasureCertificates: async (request) => {
      const { host } = request;
      checkHost(host);
      const page = await listPage(
        store,
        certificates,
        request,
        host,
        ({ key, value }) => {
          const record = fromBinary(wire.CertificateRecordSchema, value);
          if (host !== '' && record.host !== host) return undefined;
          return { id: key.slice(certificates.length + 1), record };
        },
        undefined,
        ({ record }) => record.statement.length + Math.ceil(record.evidenceBytes * base64Growth),
      );
      const presented = page.items.map(({ id, record }) => present(store, id, record));
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
      const prefix = await documentsPrefix(store, host);
      const read = ({ value }: Entry): ErasureDocument | undefined => {
        const { document } = fromBinary(wire.ErasureDocumentRecordSchema, value);
        const isWanted = kind === ErasureDocumentKind.UNSPECIFIED || document?.kind === kind;
        return isWanted && (host === '' || document?.host === host) ? document : undefined;
      };
      const filter = `${host} ${kind}`;
      const page = await listPage(store, prefix, request, filter, read, isDocument);
      return { erasureDocuments: [...page.items], nextPageToken: page.nextPageToken };
    },
    getTrust: () => ({
      erasurePublicKeyPem: identity.erasure.publicKeyPem,
      caCertificatePem: identity.caCertificatePem,
    }),
  });
}

/** What base64 makes of bytes. */
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

/** A host's documents lie below its uid; of one that is gone they are found by its name. */
async function documentsPrefix(store: StateStore, host: string): Promise<string> {
  if (host === '') return documents;
  const key = storeKey('hosts', idOf(host));
  const kept = await readRecord(store, wire.HostRecordSchema, key);
  const uid = kept?.record.host?.uid;
  return uid === undefined ? documents : storeKey(documents, uid);
}

function isDocument(key: string): boolean {
  return key.split('.').length === documentSegments;
}

/** Collection, host uid, and what it is about. */
const documentSegments = 3;

/** "HOST_UID-RUN-STEP-ATTEMPT-manifest", "HOST_UID-RUN-STEP-ATTEMPT-NUMBER-DIGEST-addendum" */
function documentParts(id: string): { hostUid: string; rest: string } | undefined {
  const ofLook = String.raw`\d+-\d+-\d+-manifest`;
  const ofCertificate = String.raw`\d+-\d+-\d+-\d+-[0-9a-f]{8}-(?:addendum|revocation)`;
  const [, hostUid, rest] = new RegExp(`^(.+)-(${ofLook}|${ofCertificate})$`).exec(id) ?? [];
  return hostUid === undefined || rest === undefined ? undefined : { hostUid, rest };
}

async function present(
  store: StateStore,
  id: string,
  record: wire.CertificateRecord,
): Promise<ErasureCertificate> {
  const { signature, createTime, host } = record;
  const statement = await wholeStatement(store, id, record.statement);
  return create(ErasureCertificateSchema, {
    name: `${certificates}/${id}`,
    statement,
    signature,
    host,
    ...(createTime === undefined ? {} : { createTime }),
    ...derived(statement),
    powerCycleProof: await proofOf(store, id),
  });
}

/** The exact bytes that were signed; the evidence of a step is kept once for all its devices. */
async function wholeStatement(
  store: StateStore,
  id: string,
  kept: Uint8Array,
): Promise<Uint8Array> {
  const sha256 = separatedEvidenceSha256(kept);
  const hostUid = documentParts(`${id}-addendum`)?.hostUid;
  if (sha256 === undefined || hostUid === undefined) return kept;
  const key = storeKey('erasureEvidence', hostUid, sha256);
  const evidence = await readRecord(store, wire.EvidenceRecordSchema, key);
  return evidence === undefined ? kept : joinEvidence(kept, evidence.record.payload);
}

/** Whether the device has shown since, after a power cycle, that it is erased. */
async function proofOf(store: StateStore, id: string): Promise<PowerCycleProof> {
  const has = async (what: 'addendum' | 'revocation') => {
    const parts = documentParts(`${id}-${what}`);
    if (parts === undefined) return false;
    const found = await store.get(storeKey(documents, parts.hostUid, parts.rest));
    return found.kind === 'found';
  };
  if (await has('revocation')) return PowerCycleProof.REFUTED;
  return (await has('addendum')) ? PowerCycleProof.PROVED : PowerCycleProof.NOT_YET;
}

/** Fields that follow from the statement; none when another version wrote what we cannot read. */
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
