/** What the judge keeps of a document about a certificate. */
import { fromBinary } from '@bufbuild/protobuf';
import { ErasureDocumentKind, store } from '@rackwright/messages';

export interface ErasureDocument {
  /** "erasureCertificates/ID" */
  readonly certificate: string;
  readonly kind: ErasureDocumentKind;
  /** Of the disk. */
  readonly serial: string;
}

/** What a record says about a certificate; undefined: it is a manifest. */
export function documentOf(value: Uint8Array): ErasureDocument | undefined {
  const { document } = fromBinary(store.ErasureDocumentRecordSchema, value);
  const [certificate = ''] = document?.certificates ?? [];
  if (document === undefined || document.kind === ErasureDocumentKind.MANIFEST) return undefined;
  const { device } = JSON.parse(new TextDecoder().decode(document.statement)) as {
    readonly device?: { readonly serial: string };
  };
  return { certificate, kind: document.kind, serial: device?.serial ?? '' };
}
