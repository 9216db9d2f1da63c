/** rackwright erasure verify: verifies certificates without any control plane. */
import {
  type Certificate,
  type CertificateReport,
  type CertificateStatus,
  certificateStatuses,
  judgeCertificates,
  kindOfDocument,
} from '@rackwright/erasure';
import { buildCommand } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { NotVerified, UsageError } from '../../failure.ts';
import { printLines } from '../../output/show.ts';
import { clean } from '../../output/text.ts';
import { readSigned, readTrust, type TrustFlags, trustFlags } from './files.ts';

interface VerifyFlags extends TrustFlags {
  readonly signature?: string;
  readonly requireRevocations: boolean;
}

const fullDescription = `Verifies certificates offline: FILE.json with FILE.json.sig beside it.

Files may also be manifests, addenda and revocations; each is used for the certificates it is about.
Certificates of one host are checked as a chain. Several trusted keys may be given, in one file or
several; a line "not-before: TIME" or "not-after: TIME" before a key limits it.

Exit codes, the worst of all files:
  0   valid: the device was erased, and nothing that is given says otherwise
  7   invalid: a certificate or document does not verify
  11  revoked: a certificate does not hold any more
  9   void: a certificate is true and says that no erasure was proved
  8   metadataOnly: only partition tables and metadata were overwritten
  10  superseded: the host was used again after the certificate
  12  --require-revocations, and not every revocation is given`;

export const verifyErasure = buildCommand({
  docs: {
    brief: 'Verify certificates offline: FILE.json with FILE.json.sig beside it',
    fullDescription,
  },
  parameters: {
    flags: {
      ...trustFlags,
      signature: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Signature, when it is not FILE.json.sig; for one certificate only',
        placeholder: 'file',
      },
      requireRevocations: {
        kind: 'boolean',
        default: false,
        brief: 'End with 12 unless every revocation is given',
      },
    },
    positional: {
      kind: 'array',
      parameter: { parse: String, brief: 'Certificate or document', placeholder: 'file.json' },
      minimum: 1,
    },
  },
  async func(this: CliContext, flags: VerifyFlags, ...files: readonly string[]) {
    if (flags.signature !== undefined && files.length > 1) {
      throw new UsageError('--signature fits one certificate only');
    }
    await verifyFiles(this.io, flags, files);
  },
});

async function verifyFiles(io: CommandIo, flags: VerifyFlags, files: readonly string[]) {
  const trust = await readTrust(io, flags.trust);
  const certificates: { file: string; content: Certificate }[] = [];
  const documents: { file: string; content: Certificate }[] = [];
  for (const file of files) {
    const content = await readSigned(io, file, flags.signature);
    const isDocument = kindOfDocument(content.statement) !== undefined;
    (isDocument ? documents : certificates).push({ file, content });
  }
  const answer = judgeCertificates({
    certificates: certificates.map(({ content }) => content),
    documents: documents.map(({ content }) => content),
    trust,
    revocationsKnown: flags.revocationsComplete,
  });
  const found: CertificateStatus[] = [];
  for (const [index, report] of answer.reports.entries()) {
    printLines(io, reportLines(certificates[index]?.file ?? '', report));
    found.push(report.status);
  }
  for (const [index, { file }] of documents.entries()) {
    const problems = answer.documentProblems.get(index);
    if (problems !== undefined) found.push('invalid');
    const verdict = problems === undefined ? 'verified' : 'DOES NOT VERIFY';
    const lines = (problems ?? []).map((problem) => `  ${clean(problem)}`);
    printLines(io, [`${clean(file)}: ${verdict}`, ...lines]);
  }
  const worst = certificateStatuses.find((status) => found.includes(status));
  if (worst !== undefined && worst !== 'valid') {
    const count = found.filter((status) => status === worst).length;
    throw new NotVerified(`${count} of ${files.length} ${endings[worst]}`, worst);
  }
  if (flags.requireRevocations && !flags.revocationsComplete) {
    throw new NotVerified('whether they were revoked is not known', 'revocationsUnknown');
  }
}

const endings: Readonly<Record<Exclude<CertificateStatus, 'valid'>, string>> = {
  invalid: 'do not verify',
  revoked: 'are revoked',
  void: 'prove no erasure',
  metadataOnly: 'prove that metadata was overwritten, and nothing else',
  superseded: 'are of an earlier use of their host',
};

const headings: Readonly<Record<CertificateStatus, string>> = {
  valid: 'verified',
  invalid: 'DOES NOT VERIFY',
  revoked: 'REVOKED',
  void: 'verified, and void',
  metadataOnly: 'verified, metadata only',
  superseded: 'verified, and superseded',
};

function reportLines(file: string, report: CertificateReport): string[] {
  const { status, statement, proved, notProved, problems } = report;
  const lines = [
    ...problems.map((problem) => `  ${clean(problem)}`),
    ...proved.map((text) => `  proved: ${clean(text)}`),
    ...notProved.map((text) => `  not proved: ${clean(text)}`),
  ];
  const heading = `${clean(file)}: ${headings[status]}`;
  if (statement === undefined) return [heading, ...lines];
  const { host, device, method, level, verdict } = statement;
  const deviceText = `${device.model} ${device.serial} of ${host.name}`;
  const message = `${verdict.kind} by ${method}, level ${level ?? 'none'}`;
  return [`${heading}: ${clean(deviceText)}: ${clean(message)}`, ...lines];
}
