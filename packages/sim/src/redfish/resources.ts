/**
 * The resources of the simulated BMC by path (schemas: DMTF DSP0268, what clients read of them).
 */

import type { RedfishSession } from './accounts.ts';
import { adapterAt, adaptersOfChassis, adaptersOfSystem } from './adapters.ts';
import { type BiosPatches, registriesPath } from './bios.ts';
import {
  bmcPath,
  bmcResetPath,
  chassisParts,
  chassisPath,
  logPath,
  type ManagedState,
  managedAt,
  root,
  updatePath,
} from './management.ts';
import { mediaAt, mediaLink } from './media.ts';
import type { RedfishJsonObject } from './messages.ts';
import {
  bootTargets,
  type RedfishHabits,
  type RedfishIdentity,
  type RedfishInventory,
} from './options.ts';
import type { RedfishBootOverride } from './power.ts';
import { collection, link, resource } from './shapes.ts';

export { root };
export const systemPath = `${root}/Systems/1`;
export const resetPath = `${systemPath}/Actions/ComputerSystem.Reset`;
export const sessionsPath = `${root}/SessionService/Sessions`;

const logServicesPath = `${bmcPath}/LogServices`;
export const clearLogPath = `${logPath}/Actions/LogService.ClearLog`;
const resetChoicesPath = `${systemPath}/ResetActionInfo`;
const storagePath = `${systemPath}/Storage`;
const adapterPaths = {
  adapters: `${chassisPath}/NetworkAdapters`,
  interfaces: `${systemPath}/NetworkInterfaces`,
};
/** The one storage controller. */
export const controllerPath = `${storagePath}/1`;

export interface ServiceState extends ManagedState {
  readonly identity: RedfishIdentity;
  readonly inventory: RedfishInventory;
  readonly powerState: string;
  readonly boot: Readonly<RedfishBootOverride>;
  readonly assetTag: string;
  readonly settings: BiosPatches;
  /** What its storage controller says of volumes. */
  readonly storage: RedfishJsonObject;
  /** URL of what its virtual drive for CDs shows; undefined: nothing. */
  readonly medium: string | undefined;
  readonly sessions: readonly RedfishSession[];
}

/** The one resource that usually needs no sign-in. */
export function serviceRoot({ identity, habits }: ServiceState): RedfishJsonObject {
  return {
    ...resource('ServiceRoot.v1_5_0.ServiceRoot', `${root}/`, 'RootService', 'Root Service'),
    RedfishVersion: '1.6.0',
    UUID: identity.uuid,
    Systems: link(`${root}/Systems`),
    Chassis: link(`${root}/Chassis`),
    Managers: link(`${root}/Managers`),
    UpdateService: link(updatePath),
    Registries: link(registriesPath),
    ...(habits.sessionsMax > 0
      ? { SessionService: link(`${root}/SessionService`), Links: { Sessions: link(sessionsPath) } }
      : { Links: {} }),
  };
}

/** Everything but the root; undefined: there is no such resource. */
export function resourceAt(path: string, state: ServiceState): RedfishJsonObject | undefined {
  const { sessions } = state;
  switch (path) {
    case `${root}/Systems`:
      return collection('ComputerSystem', path, [systemPath]);
    case systemPath:
      return system(state);
    case resetChoicesPath:
      return state.habits.resetTypesIn === 'actionInfo' ? resetChoices(state.habits) : undefined;
    case `${root}/Chassis`:
      return collection('Chassis', path, [chassisPath]);
    case chassisPath:
      return chassis(state);
    case `${root}/Managers`:
      return collection('Manager', path, [bmcPath]);
    case bmcPath:
      return bmcResource(state);
    case logServicesPath:
      return collection('LogService', path, [logPath]);
    case logPath:
      return eventLog();
    case `${root}/SessionService`:
      return sessionService(state.habits);
    case sessionsPath:
      return collection(
        'Session',
        path,
        sessions.map(({ id }) => `${path}/${id}`),
      );
    default:
      return (
        sessionAt(path, sessions) ??
        partAt(path, state) ??
        adapterAt(path, state.inventory.adapters ?? [], state.habits, adapterPaths) ??
        mediaAt(path, state.habits, state.medium) ??
        state.settings.at(path) ??
        managedAt(path, state)
      );
  }
}

function system(state: ServiceState): RedfishJsonObject {
  const { identity, habits, powerState, boot, inventory } = state;
  const { uuid, serial, manufacturer, model, sku } = identity;
  const { processors = [], memory = [] } = inventory;
  const memoryMiB = memory.reduce((sum, { capacityMiB }) => sum + capacityMiB, 0);
  return {
    ...resource('ComputerSystem.v1_10_0.ComputerSystem', systemPath, '1', 'System'),
    SystemType: 'Physical',
    UUID: uuid,
    SerialNumber: serial,
    Manufacturer: manufacturer,
    Model: model,
    SKU: sku,
    AssetTag: state.assetTag,
    BiosVersion: '1.0.0',
    Status: { State: 'Enabled', Health: state.health, HealthRollup: state.health },
    PowerState: powerState,
    Boot: { ...bootResource(boot, habits), ...state.settings.ofBoot() },
    ...state.settings.ofSystem(),
    ProcessorSummary: {
      Count: processors.length,
      Model: processors[0]?.model ?? null,
      Status: working,
    },
    MemorySummary: { TotalSystemMemoryGiB: memoryMiB / 1024, Status: working },
    Processors: link(`${systemPath}/Processors`),
    Memory: link(`${systemPath}/Memory`),
    Storage: link(storagePath),
    ...(inventory.interfaces === undefined
      ? {}
      : { EthernetInterfaces: link(`${systemPath}/EthernetInterfaces`) }),
    ...adaptersOfSystem(inventory.adapters ?? [], habits, adapterPaths),
    ...mediaLink('system', habits),
    Links: { Chassis: [link(chassisPath)], ManagedBy: [link(bmcPath)] },
    Actions: {
      '#ComputerSystem.Reset': {
        target: resetPath,
        ...(habits.resetTypesIn === 'system'
          ? { 'ResetType@Redfish.AllowableValues': habits.resetTypes }
          : { '@Redfish.ActionInfo': resetChoicesPath }),
      },
    },
  };
}

function bootResource(
  boot: Readonly<RedfishBootOverride>,
  habits: RedfishHabits,
): RedfishJsonObject {
  const { enabled, target } = boot;
  return {
    BootSourceOverrideEnabled: enabled === 'Once' ? habits.onceReadsBackAs : enabled,
    'BootSourceOverrideEnabled@Redfish.AllowableValues': ['Disabled', 'Once', 'Continuous'],
    BootSourceOverrideTarget: target,
    'BootSourceOverrideTarget@Redfish.AllowableValues': bootTargets.filter((one) =>
      habits.bootTargets.includes(one),
    ),
    ...(boot.mode === undefined ? {} : { BootSourceOverrideMode: boot.mode }),
  };
}

function resetChoices(habits: RedfishHabits): RedfishJsonObject {
  return {
    ...resource('ActionInfo.v1_1_2.ActionInfo', resetChoicesPath, 'ResetActionInfo', 'Reset'),
    Parameters: [
      {
        Name: 'ResetType',
        Required: true,
        DataType: 'String',
        AllowableValues: habits.resetTypes,
      },
    ],
  };
}

function chassis(state: ServiceState): RedfishJsonObject {
  const { identity, powerState } = state;
  return {
    ...resource('Chassis.v1_10_0.Chassis', chassisPath, '1', 'Chassis'),
    ChassisType: 'RackMount',
    Manufacturer: identity.manufacturer,
    Model: identity.model,
    SerialNumber: identity.chassisSerial,
    PowerState: powerState,
    Status: working,
    ...chassisParts(state),
    ...adaptersOfChassis(state.inventory.adapters ?? [], adapterPaths),
    Links: { ComputerSystems: [link(systemPath)], ManagedBy: [link(bmcPath)] },
  };
}

function bmcResource({ habits, startedAt }: ServiceState): RedfishJsonObject {
  return {
    ...resource('Manager.v1_5_0.Manager', bmcPath, '1', 'BMC'),
    ManagerType: 'BMC',
    FirmwareVersion: '1.0.0',
    Status: working,
    PowerState: 'On',
    LastResetTime: startedAt,
    LogServices: link(logServicesPath),
    ...mediaLink('manager', habits),
    Links: { ManagerForServers: [link(systemPath)], ManagerForChassis: [link(chassisPath)] },
    ...(habits.restartMs === undefined
      ? {}
      : { Actions: { '#Manager.Reset': { target: bmcResetPath } } }),
  };
}

function eventLog(): RedfishJsonObject {
  return {
    ...resource('LogService.v1_1_0.LogService', logPath, 'SEL', 'System Event Log'),
    LogEntryType: 'SEL',
    Status: working,
    Entries: link(`${logPath}/Entries`),
    Actions: { '#LogService.ClearLog': { target: clearLogPath } },
  };
}

function sessionService(habits: RedfishHabits): RedfishJsonObject {
  const path = `${root}/SessionService`;
  return {
    ...resource('SessionService.v1_1_6.SessionService', path, 'SessionService', 'Sessions'),
    ServiceEnabled: habits.sessionsMax > 0,
    SessionTimeout: Math.ceil(habits.sessionIdleMs / 1_000),
    Sessions: link(sessionsPath),
  };
}

function sessionAt(
  path: string,
  sessions: readonly RedfishSession[],
): RedfishJsonObject | undefined {
  const found = sessions.find(({ id }) => path === `${sessionsPath}/${id}`);
  return found === undefined ? undefined : sessionResource(found);
}

export function sessionResource({ id, user }: RedfishSession): RedfishJsonObject {
  const path = `${sessionsPath}/${id}`;
  return { ...resource('Session.v1_2_1.Session', path, id, 'Session'), UserName: user };
}

/** Processors, memory modules, interfaces, storage and its drives. */
function partAt(path: string, state: ServiceState): RedfishJsonObject | undefined {
  if (!path.startsWith(`${systemPath}/`)) return undefined;
  const [kind, id, below, drive] = path.slice(systemPath.length + 1).split('/');
  const { inventory } = state;
  const { processors = [], memory = [], drives = [], interfaces = [], emptyBays = 0 } = inventory;
  const members = (count: number): string[] =>
    Array.from({ length: count }, (_, index) => `${path}/${index + 1}`);
  switch (kind) {
    case 'Processors':
      if (id === undefined) return collection('Processor', path, members(processors.length));
      return processor(path, id, processors[Number(id) - 1]);
    case 'Memory':
      if (id === undefined) return collection('Memory', path, members(memory.length));
      return memoryModule(path, id, memory[Number(id) - 1]);
    case 'EthernetInterfaces':
      if (id === undefined) {
        return collection('EthernetInterface', path, members(interfaces.length));
      }
      return ethernetInterface(path, id, interfaces[Number(id) - 1]);
    case 'Storage':
      if (id === undefined) return collection('Storage', path, members(1));
      if (id !== '1') return undefined;
      if (below === undefined) return storage(drives.length + emptyBays, state.storage);
      return below === 'Drives' && drive !== undefined
        ? driveAt(path, drive, drives, emptyBays)
        : undefined;
    default:
      return undefined;
  }
}

type Part<K extends 'processors' | 'memory' | 'drives' | 'interfaces'> =
  | NonNullable<RedfishInventory[K]>[number]
  | undefined;

function processor(
  path: string,
  id: string,
  part: Part<'processors'>,
): RedfishJsonObject | undefined {
  if (part === undefined) return undefined;
  return {
    ...resource('Processor.v1_7_0.Processor', path, id, `CPU ${id}`),
    ProcessorType: 'CPU',
    ProcessorArchitecture: 'x86',
    InstructionSet: 'x86-64',
    Manufacturer: part.manufacturer,
    Model: part.model,
    TotalCores: part.cores,
    TotalThreads: part.threads,
    Status: working,
  };
}

function memoryModule(
  path: string,
  id: string,
  part: Part<'memory'>,
): RedfishJsonObject | undefined {
  if (part === undefined) return undefined;
  return {
    ...resource('Memory.v1_9_0.Memory', path, id, `DIMM ${id}`),
    CapacityMiB: part.capacityMiB,
    SerialNumber: part.serial,
    MemoryDeviceType: 'DDR4',
    Status: working,
  };
}

function ethernetInterface(
  path: string,
  id: string,
  part: Part<'interfaces'>,
): RedfishJsonObject | undefined {
  if (part === undefined) return undefined;
  return {
    ...resource('EthernetInterface.v1_6_0.EthernetInterface', path, id, `NIC ${id}`),
    PermanentMACAddress: part.mac,
    MACAddress: part.mac,
    ...(part.speedMbps === undefined ? {} : { SpeedMbps: part.speedMbps }),
    LinkStatus: part.speedMbps === undefined ? 'LinkDown' : 'LinkUp',
    Status: working,
  };
}

function storage(drives: number, ofVolumes: RedfishJsonObject): RedfishJsonObject {
  const path = controllerPath;
  return {
    ...resource('Storage.v1_8_0.Storage', path, '1', 'Storage'),
    StorageControllers: [],
    Drives: Array.from({ length: drives }, (_, index) => link(`${path}/Drives/${index + 1}`)),
    'Drives@odata.count': drives,
    ...ofVolumes,
    Status: working,
  };
}

function driveAt(
  path: string,
  id: string,
  drives: NonNullable<RedfishInventory['drives']>,
  emptyBays: number,
): RedfishJsonObject | undefined {
  const bay = Number(id) - drives.length;
  if (bay < 1 || bay > emptyBays) return driveResource(path, id, drives[Number(id) - 1]);
  const Status = { State: 'Absent' };
  return { ...resource('Drive.v1_9_0.Drive', path, id, `Drive ${id}`), Status };
}

function driveResource(
  path: string,
  id: string,
  part: Part<'drives'>,
): RedfishJsonObject | undefined {
  if (part === undefined) return undefined;
  return {
    ...resource('Drive.v1_9_0.Drive', path, id, `Drive ${id}`),
    Manufacturer: part.manufacturer,
    Model: part.model,
    SerialNumber: part.serial,
    CapacityBytes: part.capacityBytes,
    MediaType: part.media,
    Protocol: part.protocol,
    ...(part.firmware === undefined ? {} : { Revision: part.firmware }),
    BlockSizeBytes: 512,
    Status: working,
  };
}

const working = { State: 'Enabled', Health: 'OK' };
