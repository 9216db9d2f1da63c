/** The pages of an erasure: one for each device, one for each host. Pure. */

import {
  type CertificateReport,
  type CertificateStatus,
  type ErasureManifest,
  type ErasureStatement,
  percent,
  sha256Hex,
} from '@rackwright/erasure';
import { counted } from '@rackwright/messages';
import { duration } from '../output/time.ts';
import { grouped, type PageSection, type PrintedPage, sizeText } from './page.ts';

/** A certificate with its verdict. */
export interface PrintedCertificate {
  /** The exact bytes that were signed. */
  readonly bytes: Uint8Array;
  readonly statement: ErasureStatement;
  readonly report: CertificateReport;
}

const statusTexts: Readonly<Record<CertificateStatus, string>> = {
  valid: '',
  invalid: 'THE CERTIFICATE DOES NOT VERIFY. ',
  revoked: 'REVOKED. ',
  void: 'NO ERASURE IS PROVED. ',
  metadataOnly: 'ONLY METADATA WAS ERASED. ',
  superseded: 'OF AN EARLIER USE OF THE HOST. ',
};

const copyText = 'This page is a copy; the signed file is what counts.';

/** One page about one device. */
export function devicePage(printed: PrintedCertificate): PrintedPage {
  const { bytes, statement, report } = printed;
  const { device, host, level, methodTitle, endedAt } = statement;
  const erased = level === null ? 'Not proved to be erased' : `Erased: ${level}, by ${methodTitle}`;
  const digest = sha256Hex(bytes);
  const deviceText = `${device.model} ${device.serial}`;
  const check =
    'openssl dgst -sha256 -verify trust.pem -signature FILE.json.sig FILE.json verifies it.';
  return {
    title: 'Certificate of erasure',
    result: {
      text: `${statusTexts[report.status]}${erased}. ${deviceText}, ${timeText(endedAt)}`,
      good: report.status === 'valid',
    },
    sections: [
      fields('Organisation', [
        ['Organisation', statement.report.organisation],
        ['Customer', statement.report.customer],
        ['Technician', statement.report.technician],
        ['Ordered by', statement.orderedBy],
      ]),
      hostSection(host),
      deviceSection(statement),
      erasureSection(statement),
      verificationSection(statement),
      healthSection(statement),
      fields('What is proved', listed(report.proved)),
      fields('What is not proved', listed([...report.problems, ...report.notProved])),
      proofSection(statement, digest),
      {
        kind: 'signatures',
        heading: 'Signatures',
        labels: ['Technician, date', 'Validator, date'],
      },
    ],
    footer: `Certificate ${digest} of ${host.name}. ${copyText} ${check}`,
  };
}

/** One page about one host: its devices, and the manifest when it is at hand. */
export function hostPage(
  certificates: readonly PrintedCertificate[],
  manifest: ErasureManifest | undefined,
): PrintedPage {
  const host = certificates[0]?.statement.host;
  const named = host ?? manifest?.host;
  const good = certificates.every(({ report }) => report.status === 'valid');
  const count = counted(certificates.length, 'certificate');
  const whole = manifest === undefined ? 'no manifest is given' : manifestText(manifest);
  return {
    title: `Erasure of ${named?.name ?? 'a host'}`,
    result: {
      text: `${count}, ${good ? 'all valid' : 'NOT ALL VALID'}; ${whole}`,
      good: good && manifest?.complete !== false,
    },
    sections: [
      ...(host === undefined ? [] : [hostSection(host)]),
      {
        kind: 'table',
        heading: 'Certified devices',
        columns: ['Device', 'Size', 'Erased', 'Read back', 'Ended', 'Standing'],
        widths: [0.25, 0.09, 0.2, 0.1, 0.25, 0.11],
        rows: certificates.map(({ statement, report }) => [
          `${statement.device.model} ${statement.device.serial}`,
          sizeText(statement.device.sizeBytes).replace(/ \(.*/, ''),
          `${statement.level ?? 'not proved'}, ${statement.method}`,
          statement.verification.level,
          timeText(statement.endedAt),
          report.status,
        ]),
      },
      ...(manifest === undefined ? [] : [manifestSection(manifest)]),
    ],
    footer: `Host ${named?.uid ?? ''}. This page is a copy; the signed files are what counts.`,
  };
}

function manifestText({ complete, devices, createdAt }: ErasureManifest): string {
  const gaps = complete ? 'the manifest has no gap' : 'THE MANIFEST HAS GAPS';
  return `${gaps}: ${devices.length} storage devices seen, ${timeText(createdAt)}`;
}

function manifestSection({ devices }: ErasureManifest): PageSection {
  return {
    kind: 'table',
    heading: 'Every storage device that was seen',
    columns: ['Device', 'Kind', 'Seen by', 'Decision', 'Why'],
    widths: [0.27, 0.12, 0.12, 0.1, 0.39],
    rows: devices.map(({ name, model, serial, kind, sources, decision }) => [
      [name, model, serial].filter((text) => text !== '').join(' '),
      kind,
      sources.join(', '),
      decision.kind,
      decision.kind === 'erased' ? decision.certificate : decision.reason,
    ]),
  };
}

function hostSection(host: ErasureStatement['host']): PageSection {
  return fields('Host', [
    ['Name, uid', `${host.name}, ${host.uid}`],
    ['Manufacturer, product', join(host.manufacturer, host.product)],
    ['Serial', host.serial],
    ['Chassis, board serial', join(host.chassisSerial, host.boardSerial)],
    ['Asset tag', host.assetTag],
  ]);
}

function deviceSection({ device, capacity, ...statement }: ErasureStatement): PageSection {
  const hidden =
    capacity.kind === 'notExamined'
      ? `not examined: ${capacity.reason}`
      : `HPA ${sizeText(capacity.hostProtectedBytes)}, DCO ${sizeText(capacity.overlayBytes)}`;
  const real = capacity.kind === 'examined' ? sizeText(capacity.nativeBytes) : 'not examined';
  const removed = statement.hiddenBytesRemoved;
  return fields('Device', [
    ['Manufacturer, model', join(device.manufacturer, device.model)],
    ['Serial, WWN', join(device.serial, device.wwn)],
    ['Firmware', device.firmware],
    ['Media type, bus', join(device.mediaType ?? '', device.transport)],
    ['Apparent size', sizeText(device.sizeBytes)],
    ['Real size', real],
    ['Hidden areas', removed === 0 ? hidden : `${hidden}; removed: ${sizeText(removed)}`],
    ['Disposition', dispositionTexts[statement.disposition]],
  ]);
}

const dispositionTexts: Readonly<Record<ErasureStatement['disposition'], string>> = {
  remainsInHost: 'remains in the host, for reuse',
  hostRetired: 'the host is retired',
  hostDeleted: 'the host leaves the fleet',
};

function erasureSection(statement: ErasureStatement): PageSection {
  const { startedAt, endedAt, errors, level, rounds, verifyPasses } = statement;
  const proven = statement.methodProvenOnDevice ? '' : ' (not yet proven on a device)';
  const lasted = duration(Date.parse(endedAt) - Date.parse(startedAt));
  const errorsText = errors.map(({ kind, count }) => `${kind} ${grouped(count)}`).join(', ');
  return fields('Erasure', [
    ['Method', `${statement.methodTitle}${proven}`],
    ['Standard, category', `${statement.standard}: ${level ?? 'none reached'}`],
    ['Rounds, verify passes', `${rounds}, ${verifyPasses}`],
    ['Bytes written', statement.bytesWritten === 0 ? '' : grouped(statement.bytesWritten)],
    [
      'Throughput',
      join(speed('written', statement.writeSpeed), speed('read', statement.readSpeed)),
    ],
    ['Start, end', `${timeText(startedAt)}, ${timeText(endedAt)} (${lasted})`],
    ['Errors', errorsText === '' ? 'none' : errorsText],
    ['Dismantled before', statement.dismantled.join('; ')],
    ['Given up', statement.loss ?? ''],
  ]);
}

function speed(name: string, bytesPerSecond: number | null): string {
  return bytesPerSecond === null ? '' : `${name} ${(bytesPerSecond / 1e6).toFixed(1)} MB/s`;
}

function verificationSection({
  verification,
  verdict,
  ...statement
}: ErasureStatement): PageSection {
  const { level, places, shareReadPpcm, findsSharePpcm, confidenceBp } = verification;
  const read =
    verdict.kind === 'erased'
      ? `${grouped(verdict.bytesRead)} of ${grouped(verdict.bytesExamined)} bytes`
      : '';
  const drawn = level === 'sampled' ? `, ${grouped(places)} places drawn` : '';
  return fields('Verification', [
    ['Level', `${level}${drawn}`],
    ['Read back', read === '' ? '' : `${read} (${percent(shareReadPpcm / 1e8)})`],
    ['Finds', findsText(findsSharePpcm, confidenceBp)],
    ['Verdict', 'reason' in verdict ? `${verdict.kind}: ${verdict.reason}` : verdict.kind],
    ['Power cycle', 'not yet verified when the certificate was made'],
    ['Not examined', statement.notExamined.join('; ')],
  ]);
}

function findsText(share: number | null, confidence: number | null): string {
  if (share === null || confidence === null) return 'the challenge blocks alone show the effect';
  const sure = percent(confidence / 10_000);
  return share === 0
    ? 'any byte that is left'
    : `${percent(share / 1e8)} left anywhere, with ${sure} confidence`;
}

function healthSection({ healthBefore, healthAfter }: ErasureStatement): PageSection {
  return fields('Health', [
    ['Before', healthText(healthBefore)],
    ['After', healthText(healthAfter)],
  ]);
}

const healthNames: Readonly<
  Record<Exclude<keyof NonNullable<ErasureStatement['healthBefore']>, 'passed'>, string>
> = {
  powerOnHours: 'power-on hours',
  reallocatedSectors: 'reallocated sectors',
  pendingSectors: 'pending sectors',
  mediaErrors: 'media errors',
  percentUsed: 'percent used',
  temperatureCelsius: 'degrees Celsius',
};

function healthText(health: ErasureStatement['healthBefore']): string {
  if (health === null) return '';
  const { passed, ...counts } = health;
  const healthTexts = Object.entries(healthNames).flatMap(([name, text]) => {
    const value = Object.entries(counts).find(([key]) => key === name)?.[1] ?? null;
    return value === null ? [] : [`${text} ${grouped(value)}`];
  });
  const whole = passed === null ? [] : [passed ? 'passed' : 'FAILED'];
  return [...whole, ...healthTexts].join(', ');
}

function proofSection(statement: ErasureStatement, digest: string): PageSection {
  const { software, verifiedBy, identity } = statement;
  const tools = Object.entries(statement.tools).map(([name, version]) => `${name} ${version}`);
  const build = software.buildSha256 === null ? '' : `build ${software.buildSha256}`;
  const machine =
    identity.kind === 'proven' ? identity.witnesses.join(', ') : `waived by ${identity.policy}`;
  return fields('Proof', [
    ['Certificate SHA-256', digest],
    ['The one before it', statement.previousSha256 ?? 'none'],
    ['Store', statement.storeIncarnation],
    ['Use, operation', `${statement.useEpoch}, ${statement.operationId}`],
    ['Machine proved by', machine],
    ['Verified by', `agent key ${verifiedBy.agentKeySha256}, runner ${verifiedBy.runnerVersion}`],
    ['Software', join(software.version, build)],
    ['Tools', tools.join(', ')],
  ]);
}

/** Empty values are shown as such: an unknown value is not left out. */
function fields(heading: string, rows: readonly (readonly [string, string])[]): PageSection {
  const shown = rows.map(([label, value]) => [label, value === '' ? '–' : value] as const);
  return { kind: 'fields', heading, fields: shown };
}

function listed(sentences: readonly string[]): (readonly [string, string])[] {
  return sentences.map((sentence, index) => [String(index + 1), sentence]);
}

/** "2026-01-31 12:00:00 UTC" */
function timeText(iso: string): string {
  return iso.replace('T', ' ').replace(/\.\d+Z$/, ' UTC');
}

function join(...parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(', ');
}
