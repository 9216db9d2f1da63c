/** How parts of the control plane hear of what is written, by themselves and by others. */
export { type Follower, Following, type FollowingDependencies } from './following.ts';
export { type FollowedValues, followValues, type NoteValue } from './values.ts';
