/** Messages of rackwright.v1 by their own names; those of the inner packages in a namespace each. */
export * as agent from './agent.ts';
export * from './gen/rackwright/v1/credential_pb.ts';
export * from './gen/rackwright/v1/erasure_pb.ts';
export * from './gen/rackwright/v1/host_pb.ts';
export * from './gen/rackwright/v1/inventory_pb.ts';
export * from './gen/rackwright/v1/rack_pb.ts';
export * from './gen/rackwright/v1/run_pb.ts';
export * as runner from './runner.ts';
export * as store from './store.ts';
