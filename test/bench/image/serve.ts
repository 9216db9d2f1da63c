/** The agent's HTTP with one cache: `serve.ts FOLDER` prints its port, and serves until its end. */
import { BlobCache, Images, startBoot } from '@rackwright/agent';
import {
  nodeClock,
  nodeDisk,
  nodeHttp,
  nodeLargeFiles,
  nodeLog,
  nodeUdp,
  nodeWebClient,
} from '@rackwright/platform/node';

const [folder = '', kernel = ''] = process.argv.slice(2);
const [clock, log] = [nodeClock(), nodeLog('error')];
const cache = await BlobCache.open({
  ...{ clock, log, files: nodeLargeFiles(), folder },
  bytesMax: 1e12,
});
const images = new Images({ cache, web: nodeWebClient(), architecture: 'amd64' });
const runner = { kernel: 'kernel', initrd: 'kernel', agentPort: 7443 };
const { httpPort } = await startBoot(
  {
    interfaces: [{ serverAddress: '127.0.0.1', dhcp: { mode: 'off' } }],
    ...{ tftp: { address: '127.0.0.1', port: 0 }, http: { address: '127.0.0.1', port: 0 } },
    ...{ loaders: {}, loaderFiles: [], files: [{ name: 'kernel', path: kernel }] },
    runner: { ...runner, fingerprint: '00'.repeat(32), kernelArguments: [] },
  },
  {
    ...{ udp: nodeUdp(), http: nodeHttp(), disk: nodeDisk(), clock, log },
    memory: () => ({ snapshot: { generation: 1, hosts: [] }, grants: [] }),
    onNetboot: () => {},
    imageBlob: (hex) => images.blob(hex) ?? images.growing(hex),
  },
);
console.log(httpPort);
