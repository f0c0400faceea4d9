/** What is gossiped about: `beacon` (who leads which fragment, and where) and `head` (the best predictor known). */
export type Topic = 'beacon' | 'head'

/** In the order of their numbers in a greeting. */
export const topics: readonly Topic[] = ['beacon', 'head']

/** The gossipsub topic's name. */
export const topicName = (topic: Topic): string => `admb/1/${topic}`
