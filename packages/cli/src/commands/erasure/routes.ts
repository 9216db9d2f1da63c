/** rackwright erasure …: the signed evidence, and its verification without any control plane. */
import { create } from '@bufbuild/protobuf';
import {
  type ErasureCertificate,
  ErasureCertificateSchema,
  ErasureCertificateService,
  ListErasureCertificatesResponseSchema,
} from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import {
  connectionFlags,
  idArgument,
  outputFlag,
  resourceName,
  type SharedFlags,
} from '../../flags.ts';
import { isForPrograms, printAs, printFields, printTable } from '../../output/show.ts';
import type { TextColumn } from '../../output/table.ts';
import { ago, instant } from '../../output/time.ts';
import { allPages, callsOf } from '../frame/calls.ts';
import { exportErasures } from './export.ts';
import { printErasure } from './print.ts';
import { verifyErasure } from './verify.ts';

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
    const erasureCertificates = await withErasures(this.io, flags, (erasures) =>
      allPages(
        (pageToken) => erasures.listErasureCertificates({ pageToken, host }),
        (page) => page.erasureCertificates,
      ),
    );
    if (isForPrograms(flags.output)) {
      const schema = ListErasureCertificatesResponseSchema;
      printAs(this.io, flags.output, schema, create(schema, { erasureCertificates }));
      return;
    }
    printTable(this.io, flags.output, columns(this.io), erasureCertificates);
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
    const found = await withErasures(this.io, flags, (erasures) =>
      erasures.getErasureCertificate({ name }),
    );
    if (flags.save !== undefined) {
      await this.io.writeFile(flags.save, found.statement);
      await this.io.writeFile(`${flags.save}.sig`, found.signature);
    }
    if (isForPrograms(flags.output))
      printAs(this.io, flags.output, ErasureCertificateSchema, found);
    else printFields(this.io, fieldsOf(found));
  },
});

const getTrust = buildCommand({
  docs: { brief: 'Print the public key that certificates verify with (trust.pem)' },
  parameters: { flags: shared, aliases },
  async func(this: CliContext, flags: SharedFlags) {
    const trust = await withErasures(this.io, flags, (erasures) => erasures.getTrust({}));
    this.io.out.write(trust.erasurePublicKeyPem);
  },
});

/** All commands on erasure certificates. */
export const erasureRoutes = buildRouteMap({
  routes: {
    list: listErasures,
    get: getErasure,
    trust: getTrust,
    verify: verifyErasure,
    print: printErasure,
    export: exportErasures,
  },
  docs: { brief: briefs.erasure },
});

function columns({ clock }: CommandIo): TextColumn<ErasureCertificate>[] {
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
