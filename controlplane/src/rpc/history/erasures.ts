/** ErasureCertificateService: the signed evidence, exactly as it was signed. */
import { create, fromBinary, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type BoundService,
  bind,
  type ErasureCertificate,
  ErasureCertificateSchema,
  ErasureCertificateService,
  notFound,
  store as wire,
} from '@rackwright/api';
import { type ErasureStatement, parseStatement, ShapeError } from '@rackwright/erasure';
import { storeKey } from '@rackwright/store';
import { readRecord } from '../../records/index.ts';
import { nameProblem, requireName } from '../call/names.ts';
import { listPage } from '../call/paging.ts';
import type { RpcDependencies } from '../call/ports.ts';
import { Violations } from '../call/violations.ts';

const collection = 'erasureCertificates';

/** The service over these dependencies. */
export function createErasureService(deps: RpcDependencies): BoundService {
  const { store, identity } = deps;
  return bind(ErasureCertificateService, {
    getErasureCertificate: async ({ name }) => {
      const id = requireName(collection, name);
      const kept = await readRecord(store, wire.CertificateRecordSchema, storeKey(collection, id));
      if (kept === undefined) throw notFound(name);
      return present(name, kept.record);
    },
    listErasureCertificates: async (request) => {
      const { host } = request;
      const violations = new Violations();
      if (host !== '') violations.addIf('host', nameProblem('hosts', host));
      violations.throwIfAny();
      const page = await listPage(store, collection, request, host, ({ key, value }) => {
        const record = fromBinary(wire.CertificateRecordSchema, value);
        if (host !== '' && record.host !== host) return undefined;
        return present(key.replace('.', '/'), record);
      });
      return { erasureCertificates: [...page.items], nextPageToken: page.nextPageToken };
    },
    getTrust: () => ({
      erasurePublicKeyPem: identity.erasure.publicKeyPem,
      caCertificatePem: identity.caCertificatePem,
    }),
  });
}

function present(name: string, record: wire.CertificateRecord): ErasureCertificate {
  const { statement, signature, createTime, host } = record;
  return create(ErasureCertificateSchema, {
    name,
    statement,
    signature,
    host,
    ...(createTime === undefined ? {} : { createTime }),
    ...derived(statement),
  });
}

/** Fields that follow from the statement; none when a later version wrote what we cannot read. */
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
