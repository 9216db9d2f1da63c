import type { BmcDriver, PowerCalls } from '@rackwright/bmc';
import { IpmiDriver, RedfishDriver, WebhookDriver } from '@rackwright/bmc/drivers';
import type { CreateBmcDriver } from './governed-bmcs.ts';

/** For an order that names no calls: its driver reports that it knows no state. */
const noCalls: PowerCalls = {
  ...{ onPath: '/', offPath: '/', statePath: '/', method: '', onBody: '', offBody: '' },
  ...{ stateField: 'none', onValues: [], offValues: [], secretHeader: '', plainHttp: false },
};

/** The driver for the protocol of `endpoint`. */
export const createBmcDriver: CreateBmcDriver = (
  config,
  { clock, exec, names, httpClient: client, webClient: web },
  endpoint,
  governor,
): BmcDriver => {
  const { address, port, credential } = endpoint;
  const { username: user, password } = credential;
  const name = `${credential.name}@${credential.version}`;
  const target = { address, port, user, password, credential: name };
  const { readBack } = config;
  switch (endpoint.protocol) {
    case 'ipmi': {
      const { cipherSuite } = endpoint;
      const { ipmitool } = config;
      const own = { ...target, cipherSuite };
      const parts = { target: own, governor, exec, clock, ipmitool, readBack };
      return new IpmiDriver(names === undefined ? parts : { ...parts, names });
    }
    case 'webhook': {
      const { certificateSha256, webhook: calls } = endpoint;
      const own = { ...target, certificateSha256, calls: calls ?? noCalls };
      return new WebhookDriver({ target: own, governor, client, web, clock, readBack });
    }
    case 'redfish': {
      const { certificateSha256, expected } = endpoint;
      const own = { ...target, certificateSha256 };
      const parts = { target: own, governor, client, clock, options: config.redfish, readBack };
      return new RedfishDriver({ ...parts, ...(expected === undefined ? {} : { expected }) });
    }
  }
};
