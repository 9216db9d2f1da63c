/**
 * A Redfish BMC that really switches a machine, with the habits of real ones and faults on demand;
 * `startRedfishBmc` serves it over TLS on a socket of this machine.
 */
export {
  type RecordedCall,
  type RedfishBmc,
  type RedfishBmcOptions,
  startRedfishBmc,
} from '../loopback/redfish-bmc.ts';
export {
  type PowerOnBoot,
  type RedfishBios,
  type RedfishFault,
  type RedfishFirmware,
  type RedfishHabits,
  type RedfishHealth,
  type RedfishIdentity,
  type RedfishInventory,
  type RedfishRaid,
  type RedfishSensors,
  type SwitchedMachine,
} from './options.ts';
