/**
 * The data that an image gets at its first start, as the order says it. Pure.
 *
 * 1. A host that has to phone home gets the address in a form that its image reads. Data that
 *    cannot carry it is refused before anything is written, because the proof would never come. The
 *    control plane reads user data as YAML; here only lines of their own are looked for.
 * 2. Identity and phone number are ours; user data is passed on unchanged.
 */

import { cloudConfigToCall, noCloudSeed, type Seed } from '@rackwright/disk-image';
import { DeployProof, FirstBootFormat } from '@rackwright/messages';
import type * as agent from '@rackwright/messages/agent';
import { invalid, type Read, valid } from '@rackwright/platform';

const ownKeys: ReadonlySet<string> = new Set(['instance-id', 'local-hostname']);

/** The data of the first boot; undefined: the image needs none. `phoneHomeUrl`: empty: none. */
export function firstBootOf(
  deployment: agent.Deployment,
  phoneHomeUrl: string,
): Read<Seed | undefined> {
  const { proof = DeployProof.UNSPECIFIED, firstBoot } = deployment.deploy ?? {};
  const format = firstBoot?.format ?? FirstBootFormat.UNSPECIFIED;
  if (format === FirstBootFormat.NONE) return withoutSeed(proof);
  const url = urlToCall(proof, phoneHomeUrl);
  if (url.kind === 'bad') return url;
  const problem = url.value === undefined ? undefined : ownCall(firstBoot?.userData ?? '');
  if (problem !== undefined) return invalid(problem);
  switch (format) {
    case FirstBootFormat.UNSPECIFIED:
    case FirstBootFormat.NO_CLOUD:
      return noCloud(deployment, url.value);
    case FirstBootFormat.CONFIG_DRIVE:
      return configDrive(deployment, url.value);
    default:
      return invalid(`deploy.first_boot.format: ${String(format)} is not known here`);
  }
}

function withoutSeed(proof: DeployProof): Read<undefined> {
  if (proof === DeployProof.POWER_ON) return valid(undefined);
  return invalid(
    'deploy.first_boot.format: without first-boot data the host cannot be told where to ' +
      'phone home; choose NoCloud, a config drive, or the proof POWER_ON',
  );
}

function urlToCall(proof: DeployProof, phoneHomeUrl: string): Read<string | undefined> {
  switch (proof) {
    case DeployProof.POWER_ON:
      return valid(undefined);
    case DeployProof.UNSPECIFIED:
    case DeployProof.PHONE_HOME:
      if (phoneHomeUrl !== '') return valid(phoneHomeUrl);
      return invalid('phone_home_url: the agent says no place where the host can phone home');
    default:
      return invalid(`deploy.proof: ${String(proof)} is not known here`);
  }
}

function noCloud(deployment: agent.Deployment, phoneHomeUrl: string | undefined): Read<Seed> {
  const { id: instanceId, hostName, deploy } = deployment;
  const { userData = '', metaData = {}, networkConfig = '' } = deploy?.firstBoot ?? {};
  const taken = Object.keys(metaData).find((key) => ownKeys.has(key));
  if (taken !== undefined) return invalid(`deploy.first_boot.meta_data: ${taken} is set by us`);
  const given = { metaData, userData, networkConfig };
  return valid(noCloudSeed({ instanceId, hostName, ...given, phoneHomeUrl }));
}

function configDrive(
  { id, hostName, deploy }: agent.Deployment,
  url: string | undefined,
): Read<Seed> {
  const { userData = '', metaData: meta = {}, networkConfig = '' } = deploy?.firstBoot ?? {};
  if (networkConfig !== '') {
    return invalid(
      'deploy.first_boot.network_config: a config drive has none of cloud-init; choose NoCloud, ' +
        'or say it in the user data',
    );
  }
  const call = url === undefined ? {} : { phone_home_url: url };
  const seed: Seed = {
    kind: 'configDrive',
    metaData: JSON.stringify({ uuid: id, name: hostName, hostname: hostName, meta, ...call }),
    userData,
    // Data for cloud-init; others ignore it.
    ...(url === undefined
      ? {}
      : { vendorData: JSON.stringify({ 'cloud-init': cloudConfigToCall(url) }) }),
  };
  return valid(seed);
}

/** In cloud-init user data overrides our data: a call of its own would replace ours. */
function ownCall(userData: string): string | undefined {
  if (!/^\s*#cloud-config(?!-)/i.test(userData)) return undefined;
  if (!/^(?:\{\s*)?(["']?)phone_home\1\s*:/m.test(userData)) return undefined;
  return (
    'deploy.first_boot.user_data: its phone_home would take the place of the call that proves ' +
    'the host; leave it out, or choose the proof POWER_ON'
  );
}
