/**
 * Ports of a system's network adapters, with the MAC addresses of their functions (DSP0268:
 * NetworkAdapter, NetworkDeviceFunction, Port, NetworkPort). Many BMCs show more here than in
 * EthernetInterfaces, above all while the machine is off.
 *
 * 1. Only Ethernet functions that are not switched off count: storage functions have addresses of
 *    their own, which no system shows as a network card.
 * 2. Bounded, and no other list depends on it: an unreadable part is missing, and is reported as
 *    such.
 */
import type { BmcInterface } from '../driver.ts';
import { variantsOf } from '../vendors.ts';
import { type JsonObject, numberAt, objectAt, pathOf, pathsAt, textAt, textsAt } from './json.ts';
import { isThere, type PartReader } from './part-reader.ts';

const adaptersMax = 16;

/** Each address of each adapter once, as the adapter and its port report it. */
export async function adapterInterfaces(
  system: JsonObject,
  reader: PartReader,
): Promise<readonly BmcInterface[]> {
  const found: BmcInterface[] = [];
  for (const adapter of (await adaptersOf(system, reader)).filter(isThere)) {
    found.push(...(await interfacesOf(adapter, reader)));
  }
  return merged([], found);
}

/**
 * The listed interfaces, completed by what adapters say of them, and then the adapters' other
 * addresses.
 */
export function merged(
  listed: readonly BmcInterface[],
  ofAdapters: readonly BmcInterface[],
): readonly BmcInterface[] {
  const byMac = new Map(listed.map((one) => [keyOf(one), one]));
  for (const one of ofAdapters) byMac.set(keyOf(one), { ...one, ...byMac.get(keyOf(one)) });
  return [...byMac.values()];
}

/** The same however a BMC writes it: "52-54-00-AA-00-01". */
function keyOf({ mac }: BmcInterface): string {
  return mac.toLowerCase().replaceAll(/[^0-9a-f]/g, '');
}

async function adaptersOf(system: JsonObject, reader: PartReader): Promise<readonly JsonObject[]> {
  for (const way of variantsOf('networkAdapters')) {
    const found = await adaptersBy(way, system, reader);
    if (found.length > 0) return found;
  }
  return [];
}

async function adaptersBy(
  way: ReturnType<typeof variantsOf<'networkAdapters'>>[number],
  system: JsonObject,
  reader: PartReader,
): Promise<readonly JsonObject[]> {
  switch (way) {
    case 'system': {
      const path = pathOf(objectAt(system, 'NetworkInterfaces'));
      const members = await reader.members(path, adaptersMax);
      const adapter = (one: JsonObject) =>
        pathOf(objectAt(objectAt(one, 'Links'), 'NetworkAdapter'));
      const paths = members.flatMap((one) => adapter(one) ?? []);
      return reader.all([...new Set(paths)], adaptersMax);
    }
    case 'chassis': {
      const [path] = pathsAt(objectAt(system, 'Links'), 'Chassis');
      const [chassis = {}] = path === undefined ? [] : await reader.all([path], 1);
      return reader.members(pathOf(objectAt(chassis, 'NetworkAdapters')), adaptersMax);
    }
  }
}

async function interfacesOf(
  adapter: JsonObject,
  reader: PartReader,
): Promise<readonly BmcInterface[]> {
  const functions = await reader.members(pathOf(objectAt(adapter, 'NetworkDeviceFunctions')));
  if (functions.length === 0) return interfacesOfPorts(adapter, reader);
  const ports = new Map<string, JsonObject | undefined>();
  const found: BmcInterface[] = [];
  for (const one of functions.filter(isEthernet)) {
    const ethernet = objectAt(one, 'Ethernet');
    const mac = textAt(ethernet, 'PermanentMACAddress') ?? textAt(ethernet, 'MACAddress');
    const path = portPathOf(one);
    // Several functions may share a port.
    if (path !== undefined && !ports.has(path)) ports.set(path, (await reader.all([path], 1))[0]);
    const port = path === undefined ? undefined : ports.get(path);
    found.push(...interfaceOf(mac, adapter, port ?? {}, one));
  }
  return found;
}

/** For an adapter without readable functions, its ports give the addresses. */
async function interfacesOfPorts(
  adapter: JsonObject,
  reader: PartReader,
): Promise<readonly BmcInterface[]> {
  const list = pathOf(objectAt(adapter, 'Ports')) ?? pathOf(objectAt(adapter, 'NetworkPorts'));
  const ports = await reader.members(list);
  return ports.filter(isThere).flatMap((port) => {
    const macs =
      textsAt(objectAt(port, 'Ethernet'), 'AssociatedMACAddresses') ??
      textsAt(port, 'AssociatedNetworkAddresses') ??
      [];
    return macs.flatMap((mac) => interfaceOf(mac, adapter, port, port));
  });
}

/** (1) */
function isEthernet(body: JsonObject): boolean {
  const type = textAt(body, 'NetDevFuncType') ?? 'Ethernet';
  return type === 'Ethernet' && body['DeviceEnabled'] !== false && isThere(body);
}

function portPathOf(body: JsonObject): string | undefined {
  const links = objectAt(body, 'Links');
  for (const way of variantsOf('portOfFunction')) {
    const path = pathOf(objectAt(links, way));
    if (path !== undefined) return path;
  }
  return undefined;
}

/** `named`: the resource that gives the name where there is no port. */
function interfaceOf(
  mac: string | undefined,
  adapter: JsonObject,
  port: JsonObject,
  named: JsonObject,
): readonly BmcInterface[] {
  if (mac === undefined || !/^([0-9a-f]{2}[:-]?){5}[0-9a-f]{2}$/i.test(mac)) return [];
  if (/^[0:-]+$/.test(mac)) return [];
  const speedMbps = speedOf(port);
  const linkUp = linkUpOf(port);
  return [
    {
      mac,
      name: nameOf(textAt(adapter, 'Id') ?? '', textAt(port, 'Id') ?? textAt(named, 'Id') ?? ''),
      ...(speedMbps === undefined ? {} : { speedMbps }),
      ...(linkUp === undefined ? {} : { linkUp }),
    },
  ];
}

/** Some call a port by its adapter already: "NIC.Slot.1-1" of "NIC.Slot.1". */
function nameOf(adapter: string, port: string): string {
  return port.startsWith(adapter) ? port : `${adapter}/${port}`;
}

/** Port, and NetworkPort before it. */
function speedOf(port: JsonObject): number | undefined {
  const gbps = numberAt(port, 'CurrentSpeedGbps');
  return gbps === undefined ? numberAt(port, 'CurrentLinkSpeedMbps') : Math.round(gbps * 1_000);
}

function linkUpOf(port: JsonObject): boolean | undefined {
  const status = textAt(port, 'LinkStatus') ?? '';
  return variantsOf('linkUp').some((way) => way === status)
    ? true
    : variantsOf('linkDown').some((way) => way === status)
      ? false
      : undefined;
}
