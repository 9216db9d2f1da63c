/** rackwright erasure print: pages for auditors, from files and without any control plane. */
import {
  type Certificate,
  type ErasureManifest,
  judgeCertificates,
  kindOfDocument,
  parseStatement,
  ShapeError,
  verifyDocument,
} from '@rackwright/erasure';
import { buildCommand } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { printLines } from '../../output/show.ts';
import { clean } from '../../output/text.ts';
import { devicePage, hostPage, type PrintedCertificate } from '../../print/erasure-pages.ts';
import { htmlOf } from '../../print/html.ts';
import type { PrintedPage } from '../../print/page.ts';
import { pdfOf } from '../../print/pdf.ts';
import { readSigned, readTrust, type TrustFlags, trustFlags } from './files.ts';

interface PrintFlags extends TrustFlags {
  readonly html?: string;
  readonly pdf?: string;
}

const file = { kind: 'parsed', parse: String, optional: true, placeholder: 'file' } as const;

export const printErasure = buildCommand({
  docs: {
    brief: 'Print certificates: a page for each host and for each device, as HTML or PDF',
    fullDescription:
      'Writes a page for each host and a page for each certificate. Manifests, addenda and ' +
      'revocations among the files are shown with the certificates they are about. Each page ' +
      'says what the certificate proves by these files, as "erasure verify" does.',
  },
  parameters: {
    flags: {
      ...trustFlags,
      html: { ...file, brief: 'Write HTML for print' },
      pdf: { ...file, brief: 'Write PDF' },
    },
    positional: {
      kind: 'array',
      parameter: { parse: String, brief: 'Certificate or document', placeholder: 'file.json' },
      minimum: 1,
    },
  },
  async func(this: CliContext, flags: PrintFlags, ...files: readonly string[]) {
    const { html, pdf } = flags;
    if (html === undefined && pdf === undefined) throw new UsageError('--html or --pdf is needed');
    const pages = await pagesOf(this.io, flags, files);
    const title = 'Erasure';
    if (html !== undefined) {
      await this.io.writeFile(html, new TextEncoder().encode(htmlOf(title, pages)));
    }
    if (pdf !== undefined) await this.io.writeFile(pdf, pdfOf(title, pages));
    const written = [html, pdf].filter((path) => path !== undefined).map(clean);
    printLines(this.io, [`${pages.length} pages written to ${written.join(' and ')}`]);
  },
});

async function pagesOf(
  io: CommandIo,
  flags: PrintFlags,
  files: readonly string[],
): Promise<PrintedPage[]> {
  const trust = await readTrust(io, flags.trust);
  const certificates: Certificate[] = [];
  const documents: Certificate[] = [];
  for (const path of files) {
    const signed = await readSigned(io, path);
    (kindOfDocument(signed.statement) === undefined ? certificates : documents).push(signed);
  }
  const revocationsKnown = flags.revocationsComplete;
  const { reports } = judgeCertificates({ certificates, documents, trust, revocationsKnown });
  const printed = certificates.flatMap(({ statement: bytes }, index): PrintedCertificate[] => {
    const report = reports[index];
    const statement = report?.statement ?? readable(bytes);
    if (report === undefined || statement === undefined) {
      throw new UsageError(`${files[index] ?? 'a file'} is no certificate`);
    }
    return [{ bytes, statement, report }];
  });
  const manifests = documents.flatMap((document): ErasureManifest[] => {
    const check = verifyDocument(document, trust);
    return check.kind === 'valid' && check.content.kind === 'manifest'
      ? [check.content.manifest]
      : [];
  });
  const uids = new Set([
    ...printed.map(({ statement }) => statement.host.uid),
    ...manifests.map(({ host }) => host.uid),
  ]);
  return [...uids].flatMap((uid) => {
    const own = printed.filter(({ statement }) => statement.host.uid === uid);
    const manifest = manifests.filter(({ host }) => host.uid === uid).at(-1);
    return [hostPage(own, manifest), ...own.map(devicePage)];
  });
}

/** A statement that does not verify is printed as such, if it can be read at all. */
function readable(bytes: Uint8Array) {
  try {
    return parseStatement(bytes);
  } catch (error) {
    if (error instanceof ShapeError) return undefined;
    throw error;
  }
}
