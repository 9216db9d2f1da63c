import { afterAll, beforeAll } from 'vitest';
import { USUAL_LIMITS } from '../conformance/subject.ts';
import { storeConformance } from '../conformance/suite.ts';
import { NatsCluster, serverMissing } from '../testing/nats-cluster.ts';
import { natsUnderTest } from './subject.ts';

let cluster: NatsCluster;

beforeAll(async () => {
  if (serverMissing() !== undefined) return;
  cluster = await NatsCluster.start({ servers: 3, syncAlways: true });
});

afterAll(() => cluster?.dispose());

const limits = { ...USUAL_LIMITS, patienceMs: 30_000 };

storeConformance(
  'the NATS store on three servers',
  (needs) => natsUnderTest(cluster, needs),
  limits,
  serverMissing,
);
