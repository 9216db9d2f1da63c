import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  type BmcEndpoint,
  BmcEndpointSchema,
  BmcProtocol,
  type PowerWebhook,
  PowerWebhookSchema,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { Violations } from '../../call/violations.ts';
import { checkWebhook } from './webhook-spec.ts';

const fit = { onPath: '/relay/0?turn=on', offPath: '/relay/0?turn=off', statePath: '/relay/0' };

class FieldViolations extends Violations {
  readonly fields: string[] = [];

  override add(field: string): void {
    this.fields.push(field);
  }
}

function fieldsOf(
  webhook: Exclude<MessageInitShape<typeof PowerWebhookSchema>, PowerWebhook> | undefined,
  more: Exclude<MessageInitShape<typeof BmcEndpointSchema>, BmcEndpoint> = {},
): string[] {
  const bmc = create(BmcEndpointSchema, {
    protocol: BmcProtocol.WEBHOOK,
    address: '10.0.0.9',
    credential: 'credentials/pdu',
    ...(webhook === undefined
      ? {}
      : { webhook: create(PowerWebhookSchema, { ...fit, ...webhook }) }),
    ...more,
  });
  const found = new FieldViolations();
  checkWebhook('bmc', bmc, found);
  return found.fields;
}

test('the settings of a usual device are accepted', () => {
  expect(fieldsOf({})).toEqual([]);
  expect(fieldsOf({ method: 'PUT', onBody: '{"on":true}', offBody: '{"on":false}' })).toEqual([]);
  expect(fieldsOf({ secretHeader: 'X-Api-Key', stateField: 'relays.0.on' })).toEqual([]);
  expect(fieldsOf({ plainHttp: true }, { port: 80, wakeOnLan: true })).toEqual([]);
});

test.each([
  [{ onPath: 'relay' }, 'on_path'],
  [{ onPath: '//elsewhere/x' }, 'on_path'],
  [{ onPath: '/a/../b' }, 'on_path'],
  [{ statePath: '/a b' }, 'state_path'],
  [{ statePath: '/a\r\nx-other: 1' }, 'state_path'],
  [{ offPath: fit.onPath }, 'off_path'],
  [{ offPath: `/${'x'.repeat(512)}` }, 'off_path'],
  [{ method: 'DELETE' }, 'method'],
  [{ onBody: '{' }, 'on_body'],
  [{ method: 'GET', onBody: '1' }, 'on_body'],
  [{ expectedStatus: 301 }, 'expected_status'],
  [{ stateField: 'a..b' }, 'state_field'],
  [{ onValues: ['up'], offValues: ['UP'] }, 'off_values'],
  [{ onValues: [''] }, 'on_values'],
  [{ secretHeader: 'Host' }, 'secret_header'],
  [{ secretHeader: 'x: y' }, 'secret_header'],
  [{ plainHttp: true }, 'plain_http'],
])('%j is refused, and %s named', (webhook, field) => {
  expect(fieldsOf(webhook)).toEqual([`bmc.webhook.${field}`]);
});

test('a field of one protocol is refused with another', () => {
  expect(fieldsOf(undefined)).toEqual(['bmc.webhook']);
  expect(fieldsOf({}, { protocol: BmcProtocol.REDFISH })).toEqual(['bmc.webhook']);
  expect(fieldsOf(undefined, { protocol: BmcProtocol.IPMI, wakeOnLan: true })).toEqual([
    'bmc.wake_on_lan',
  ]);
});
