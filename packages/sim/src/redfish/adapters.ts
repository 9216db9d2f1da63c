/**
 * Network adapters of the simulated machine (DSP0268: NetworkAdapter and its subordinate
 * resources).
 */
import type { RedfishJsonObject } from './messages.ts';
import type { RedfishAdapter, RedfishHabits } from './options.ts';
import { collection, link, resource } from './shapes.ts';

/** The paths of their lists in the chassis, and in the system. */
export interface AdapterPaths {
  readonly adapters: string;
  readonly interfaces: string;
}

/** What the system says of them. */
export function adaptersOfSystem(
  adapters: readonly RedfishAdapter[],
  habits: RedfishHabits,
  { interfaces }: AdapterPaths,
): RedfishJsonObject {
  const isListed = adapters.length > 0 && habits.adaptersIn === 'system';
  return isListed ? { NetworkInterfaces: link(interfaces) } : {};
}

/** What the chassis says of them. */
export function adaptersOfChassis(
  adapters: readonly RedfishAdapter[],
  { adapters: path }: AdapterPaths,
): RedfishJsonObject {
  return adapters.length > 0 ? { NetworkAdapters: link(path) } : {};
}

/** Undefined: there is no such resource. */
export function adapterAt(
  path: string,
  adapters: readonly RedfishAdapter[],
  habits: RedfishHabits,
  paths: AdapterPaths,
): RedfishJsonObject | undefined {
  const ids = (at: string) => adapters.map(({ id }) => `${at}/${id}`);
  if (adapters.length === 0) return undefined;
  if (path === paths.adapters) return collection('NetworkAdapter', path, ids(path));
  if (path === paths.interfaces) return collection('NetworkInterface', path, ids(path));
  for (const one of adapters) {
    if (path === `${paths.interfaces}/${one.id}`) {
      const Links = { NetworkAdapter: link(`${paths.adapters}/${one.id}`) };
      return {
        ...resource('NetworkInterface.v1_2_0.NetworkInterface', path, one.id, 'NIC'),
        Links,
      };
    }
    const own = `${paths.adapters}/${one.id}`;
    if (path === own || path.startsWith(`${own}/`)) return below(path, own, one, habits);
  }
  return undefined;
}

function below(
  path: string,
  own: string,
  { id, ports, functions }: RedfishAdapter,
  { adapterPorts }: RedfishHabits,
): RedfishJsonObject | undefined {
  const list = `${own}/${adapterPorts}`;
  const functionList = `${own}/NetworkDeviceFunctions`;
  switch (path) {
    case own:
      return {
        ...resource('NetworkAdapter.v1_9_0.NetworkAdapter', path, id, 'Adapter'),
        [adapterPorts]: link(list),
        ...(functions === undefined ? {} : { NetworkDeviceFunctions: link(functionList) }),
      };
    case list: {
      const members = ports.map((port) => `${path}/${port.id}`);
      return collection(adapterPorts === 'Ports' ? 'Port' : 'NetworkPort', path, members);
    }
    case functionList: {
      const members = (functions ?? []).map((_, at) => `${path}/${at + 1}`);
      return collection('NetworkDeviceFunction', path, members);
    }
    default: {
      const port = ports.find((one) => path === `${list}/${one.id}`);
      if (port !== undefined) return portShown(path, port, adapterPorts);
      const at = Number(path.slice(functionList.length + 1)) - 1;
      const found = path === `${functionList}/${at + 1}` ? functions?.[at] : undefined;
      return (
        found && functionShown(path, `${at + 1}`, found, `${list}/${found.port}`, adapterPorts)
      );
    }
  }
}

function portShown(
  path: string,
  { id, speedMbps, macs }: RedfishAdapter['ports'][number],
  as: RedfishHabits['adapterPorts'],
): RedfishJsonObject {
  const isUp = speedMbps !== undefined;
  if (as === 'Ports') {
    return {
      ...resource('Port.v1_7_0.Port', path, id, 'Port'),
      LinkStatus: isUp ? 'LinkUp' : 'LinkDown',
      ...(isUp ? { CurrentSpeedGbps: speedMbps / 1_000 } : {}),
      ...(macs === undefined ? {} : { Ethernet: { AssociatedMACAddresses: macs } }),
    };
  }
  return {
    ...resource('NetworkPort.v1_4_0.NetworkPort', path, id, 'Port'),
    LinkStatus: isUp ? 'Up' : 'Down',
    ...(isUp ? { CurrentLinkSpeedMbps: speedMbps } : {}),
    ...(macs === undefined ? {} : { AssociatedNetworkAddresses: macs }),
  };
}

function functionShown(
  path: string,
  id: string,
  { mac, type = 'Ethernet' }: NonNullable<RedfishAdapter['functions']>[number],
  port: string,
  as: RedfishHabits['adapterPorts'],
): RedfishJsonObject {
  const key = as === 'Ports' ? 'PhysicalNetworkPortAssignment' : 'PhysicalPortAssignment';
  return {
    ...resource('NetworkDeviceFunction.v1_9_0.NetworkDeviceFunction', path, id, 'Function'),
    NetDevFuncType: type,
    Ethernet: { PermanentMACAddress: mac, MACAddress: mac },
    Links: { [key]: link(port) },
  };
}
