/** How parts of the control plane learn of writes, by this and by other replicas. */
export { type Follower, type FollowingDependencies, StoreFollower } from './following.ts';
export { type FollowedValues, followValues, type NoteValue } from './values.ts';
