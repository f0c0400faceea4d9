/** Ids of the stream protocols, and gossip topics; see docs/protocol-network.md. */
export const edgeProtocol = '/admb/edge/1'
export const fetchProtocol = '/admb/fetch/1'
export const catchUpProtocol = '/admb/greet/1'
export const referralProtocol = '/admb/refer/1'

/** `beacon`: roots of tree fragments; `head`: new predictors; `run`: runs of peers, which show whether two live peers have one identity. */
export type Topic = 'beacon' | 'head' | 'run'

/** Ordered by their numbers in a gossip catch-up. */
export const topics: readonly Topic[] = ['beacon', 'head', 'run']

/** Name of the gossipsub topic. */
export const topicName = (topic: Topic, networkId?: string): string => inNetwork(`admb/1/${topic}`, networkId)

/** Names that peers of other networks do not understand. */
export const inNetwork = (name: string, networkId?: string): string =>
  networkId === undefined ? name : `${name}/${networkId}`
