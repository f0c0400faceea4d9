/** Ids of the stream protocols, and gossip topics; see docs/protocol-network.md. */
export const edgeProtocol = '/admb/edge/1'
export const fetchProtocol = '/admb/fetch/1'
export const catchUpProtocol = '/admb/greet/1'
export const referralProtocol = '/admb/refer/1'

/** `beacon`: roots of tree fragments; `head`: new predictors; `status`: statuses for the network view. */
export type Topic = 'beacon' | 'head' | 'status'

/** Ordered by their numbers in a gossip catch-up. */
export const topics: readonly Topic[] = ['beacon', 'head', 'status']

/** Name of the gossipsub topic. */
export const topicName = (topic: Topic): string => `admb/1/${topic}`
