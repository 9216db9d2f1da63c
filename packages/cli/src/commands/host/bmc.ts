/** rackwright host bmc sensors, log, firmware, bios, boot-order */
import {
  type BiosSetting,
  type BmcLogEntry,
  type BmcReading,
  BmcReadingSchema,
  BmcReadKind,
  type BmcSensor,
  type BootOption,
  enumWord,
  type FirmwareComponent,
  type HealthLevel,
  HealthLevelSchema,
  type ReadHostBmcRequest,
  SensorKindSchema,
} from '@rackwright/messages';
import { buildCommand, buildRouteMap } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { parseWhole, resourceName, type SharedFlags } from '../../flags.ts';
import { isForPrograms, printAs, printLines, printTable } from '../../output/show.ts';
import type { TextColumn } from '../../output/table.ts';
import { hostAliases as aliases, hostArgument, hostFlags, withHosts } from './client.ts';

const healthOf = (level: HealthLevel): string => enumWord(HealthLevelSchema, level) ?? '';

const sensorColumns: readonly TextColumn<BmcSensor>[] = [
  { title: 'NAME', value: ({ name }) => name, widthMin: 12 },
  { title: 'KIND', value: ({ kind }) => enumWord(SensorKindSchema, kind) ?? 'other' },
  {
    title: 'READING',
    value: ({ reading, unit }) => (reading === undefined ? '' : `${reading} ${unit}`),
  },
  { title: 'HEALTH', value: ({ health }) => healthOf(health) },
];

const logColumns: readonly TextColumn<BmcLogEntry>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'TIME', value: ({ time }) => time },
  { title: 'SEVERITY', value: ({ severity }) => healthOf(severity) },
  { title: 'MESSAGE', value: ({ message }) => message, widthMin: 20 },
];

const firmwareColumns: readonly TextColumn<FirmwareComponent>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'NAME', value: ({ name }) => name, widthMin: 12 },
  { title: 'VERSION', value: ({ version }) => version },
  {
    title: 'UPDATEABLE',
    value: ({ updateable }) => (updateable === undefined ? '' : updateable ? 'yes' : 'no'),
  },
];

const biosColumns: readonly TextColumn<BiosSetting>[] = [
  { title: 'SETTING', value: ({ name }) => name },
  { title: 'CURRENT', value: ({ current }) => current },
  { title: 'NEXT BOOT', value: ({ pending }) => pending ?? '' },
];

const bootOrderColumns: readonly TextColumn<BootOption>[] = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'NAME', value: ({ name }) => name },
];

type Show = (io: CommandIo, flags: SharedFlags, reading: BmcReading) => void;
type BmcReadOptions = Pick<ReadHostBmcRequest, 'kind'> & { readonly maxEntries?: number };

const docsOf = (brief: string) => ({
  brief,
  fullDescription: `${brief}, as its BMC says it now. Work on the host goes first.`,
});

async function read(
  io: CommandIo,
  flags: SharedFlags,
  id: string,
  options: BmcReadOptions,
  show: Show,
): Promise<void> {
  const name = resourceName('hosts', id);
  const reading = await withHosts(io, flags, (hosts) => hosts.readHostBmc({ name, ...options }));
  if (isForPrograms(flags.output)) printAs(io, flags.output, BmcReadingSchema, reading);
  else show(io, flags, reading);
}

/** A command that reads all that there is. */
function reads(brief: string, kind: BmcReadKind, show: Show) {
  return buildCommand({
    docs: docsOf(brief),
    parameters: { flags: hostFlags, positional: hostArgument, aliases },
    async func(this: CliContext, flags: SharedFlags, id: string) {
      await read(this.io, flags, id, { kind }, show);
    },
  });
}

/** A command that reads all that there is, and shows it as one table. */
function lists<Row>(brief: string, kind: BmcReadKind, { columns, rowsOf }: Table<Row>) {
  return reads(brief, kind, (io, { output }, reading) => {
    printTable(io, output, columns, rowsOf(reading));
    showRest(io, reading);
  });
}

interface Table<Row> {
  readonly columns: readonly TextColumn<Row>[];
  readonly rowsOf: (reading: BmcReading) => readonly Row[];
}

function showRest(io: CommandIo, { complete }: BmcReading): void {
  if (!complete) printLines(io, ['There is more, or some of it could not be read.']);
}

const sensors = reads(
  'Temperatures, fans and power of a host',
  BmcReadKind.SENSORS,
  (io, { output }, reading) => {
    const { level = 0, message = '' } = reading.health ?? {};
    const health = healthOf(level) || 'not said';
    printLines(io, [`Health: ${health}${message === '' ? '' : ` (${message})`}`]);
    printTable(io, output, sensorColumns, reading.sensors);
    showRest(io, reading);
  },
);

const log = buildCommand({
  docs: docsOf('The event log that the BMC keeps of a host, newest first'),
  parameters: {
    flags: {
      ...hostFlags,
      limit: {
        kind: 'parsed',
        parse: parseWhole,
        default: '50',
        brief: 'Maximum number of entries, 1 to 200',
        placeholder: 'number',
      },
    },
    positional: hostArgument,
    aliases,
  },
  async func(this: CliContext, flags: SharedFlags & { limit: number }, id: string) {
    const question = { kind: BmcReadKind.LOG, maxEntries: flags.limit };
    await read(this.io, flags, id, question, (io, { output }, reading) => {
      printTable(io, output, logColumns, reading.logEntries);
      showRest(io, reading);
    });
  },
});

const firmware = lists('Firmware of a host and its parts', BmcReadKind.FIRMWARE, {
  columns: firmwareColumns,
  rowsOf: (reading) => reading.firmware,
});

const bios = lists('Settings of a host’s firmware', BmcReadKind.BIOS, {
  columns: biosColumns,
  rowsOf: (reading) => reading.biosSettings,
});

const bootOrder = lists('What a host boots from by itself, in its order', BmcReadKind.BOOT_ORDER, {
  columns: bootOrderColumns,
  rowsOf: (reading) => reading.bootOptions,
});

export const bmcRoutes = buildRouteMap({
  routes: { sensors, log, firmware, bios, 'boot-order': bootOrder },
  docs: { brief: 'Ask the BMC of a host' },
});
