/** rackwright erasure …: the signed evidence, and its verification without any control plane. */
import { create } from '@bufbuild/protobuf';
import {
  type ErasureCertificate,
  ErasureCertificateSchema,
  ErasureCertificateService,
  ListErasureCertificatesResponseSchema,
} from '@rackwright/api';
import { describeProblem, verifyCertificate } from '@rackwright/erasure';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { NotVerified, UsageError } from '../failure.ts';
import {
  connectionFlags,
  idArgument,
  outputFlag,
  resourceName,
  type SharedFlags,
} from '../flags.ts';
import { printFields, printJson, printLines, printTable } from '../output/show.ts';
import type { Column } from '../output/table.ts';
import { clean } from '../output/text.ts';
import { ago, instant } from '../output/time.ts';
import type { CliContext, World } from '../world.ts';
import { allPages, callsOf } from './calls.ts';

const shared = { ...connectionFlags, ...outputFlag };
const aliases = { o: 'output' } as const;

const withErasures = callsOf(ErasureCertificateService);

const listErasures = buildCommand({
  docs: { brief: 'List erasure certificates' },
  parameters: {
    flags: {
      ...shared,
      host: { kind: 'parsed', parse: String, optional: true, brief: 'Only of this host' },
    },
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags & { host?: string }) {
    const host = flags.host === undefined ? '' : resourceName('hosts', flags.host);
    const erasureCertificates = await withErasures(this.world, flags, (erasures) =>
      allPages(
        (pageToken) => erasures.listErasureCertificates({ pageToken, host }),
        (page) => page.erasureCertificates,
      ),
    );
    if (flags.output === 'json') {
      const schema = ListErasureCertificatesResponseSchema;
      printJson(this.world, schema, create(schema, { erasureCertificates }));
      return;
    }
    printTable(this.world, columns(this.world), erasureCertificates);
  },
});

const getErasure = buildCommand({
  docs: { brief: 'Show a certificate, or write it to files: FILE.json and FILE.json.sig' },
  parameters: {
    flags: {
      ...shared,
      save: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Write statement and signature to FILE and FILE.sig',
        placeholder: 'file.json',
      },
    },
    positional: idArgument('certificate', 'Id of the certificate'),
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags & { save?: string }, id: string) {
    const name = resourceName('erasureCertificates', id);
    const found = await withErasures(this.world, flags, (erasures) =>
      erasures.getErasureCertificate({ name }),
    );
    if (flags.save !== undefined) {
      await this.world.writeFile(flags.save, found.statement);
      await this.world.writeFile(`${flags.save}.sig`, found.signature);
    }
    if (flags.output === 'json') printJson(this.world, ErasureCertificateSchema, found);
    else printFields(this.world, fieldsOf(found));
  },
});

const getTrust = buildCommand({
  docs: { brief: 'Print the public key that certificates verify with (trust.pem)' },
  parameters: { flags: shared, aliases },
  async func(this: CliContext, flags: SharedFlags) {
    const trust = await withErasures(this.world, flags, (erasures) => erasures.getTrust({}));
    this.world.out.write(trust.erasurePublicKeyPem);
  },
});

const verifyErasure = buildCommand({
  docs: { brief: 'Verify certificates offline: FILE.json with FILE.json.sig beside it' },
  parameters: {
    flags: {
      trust: {
        kind: 'parsed',
        parse: String,
        brief: 'Public key of the control plane (trust.pem)',
        placeholder: 'file',
      },
      signature: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Signature, when it is not FILE.json.sig; for one certificate only',
        placeholder: 'file',
      },
    },
    positional: {
      kind: 'array',
      parameter: { parse: String, brief: 'Statement of a certificate', placeholder: 'file.json' },
      minimum: 1,
    },
  },
  async func(
    this: CliContext,
    flags: { trust: string; signature?: string },
    ...files: readonly string[]
  ) {
    if (flags.signature !== undefined && files.length > 1) {
      throw new UsageError('--signature fits one certificate only');
    }
    const trustPem = new TextDecoder().decode(await mustRead(this.world, flags.trust));
    let invalid = 0;
    for (const file of files) {
      const verdict = await verifyFile(this.world, file, flags.signature, trustPem);
      if (!verdict.valid) invalid += 1;
      printLines(this.world, verdict.lines);
    }
    if (invalid > 0) throw new NotVerified(`${invalid} of ${files.length} do not verify`);
  },
});

/** All commands on erasure certificates. */
export const erasureRoutes = buildRouteMap({
  routes: { list: listErasures, get: getErasure, trust: getTrust, verify: verifyErasure },
  docs: { brief: 'Erasure certificates' },
});

async function verifyFile(
  world: World,
  file: string,
  signatureFile: string | undefined,
  trustPem: string,
): Promise<{ valid: boolean; lines: string[] }> {
  const statement = await mustRead(world, file);
  const signature = await mustRead(world, signatureFile ?? `${file}.sig`);
  const check = verifyCertificate({ statement, signature }, trustPem);
  if (check.kind === 'invalid') {
    const problems = check.problems.map((problem) => `  ${clean(describeProblem(problem))}`);
    return { valid: false, lines: [`${clean(file)}: DOES NOT VERIFY`, ...problems] };
  }
  const { host, device, method, level, verdict } = check.statement;
  const what = `${device.model} ${device.serial} of ${host.name}`;
  const said = `${verdict.kind} by ${method}, level ${level ?? 'none'}`;
  return { valid: true, lines: [`${clean(file)}: verified: ${clean(what)}: ${clean(said)}`] };
}

async function mustRead(world: World, path: string): Promise<Uint8Array> {
  const bytes = await world.readFile(path);
  if (bytes === undefined) throw new UsageError(`${path} does not exist`);
  return bytes;
}

function columns({ clock }: World): Column<ErasureCertificate>[] {
  return [
    { title: 'CERTIFICATE', value: ({ name }) => name.replace(/^.*\//, ''), widthMin: 16 },
    { title: 'HOST', value: ({ host }) => host, widthMin: 10 },
    { title: 'SERIAL', value: ({ deviceSerial }) => deviceSerial, widthMin: 10 },
    { title: 'LEVEL', value: ({ level }) => level },
    { title: 'METHOD', value: ({ method }) => method, dropOrder: 2 },
    { title: 'MODEL', value: ({ deviceModel }) => deviceModel, dropOrder: 3, widthMin: 8 },
    { title: 'MADE', value: ({ createTime }) => ago(clock, createTime), dropOrder: 1 },
  ];
}

function fieldsOf(certificate: ErasureCertificate): [string, string][] {
  return [
    ['name', certificate.name],
    ['host', certificate.host],
    ['host uid', certificate.hostUid],
    ['device', `${certificate.deviceModel} ${certificate.deviceSerial}`],
    ['method', certificate.method],
    ['level', certificate.level],
    ['use epoch', String(certificate.useEpoch)],
    ['made', instant(certificate.createTime)],
  ];
}
