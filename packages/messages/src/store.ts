/** Messages of rackwright.store.v1, generated from proto/. */
export * from './gen/rackwright/store/v1/record_pb.ts';
