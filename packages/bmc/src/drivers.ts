/** The drivers of BMCs, one for each protocol. */
export { IpmiDriver, type IpmiDriverParts } from './ipmi/driver.ts';
export { RedfishDriver } from './redfish/driver.ts';
export { WebhookDriver, type WebhookDriverParts, type WebhookTarget } from './webhook/driver.ts';
