/** The models that need no file, apart from what makes them: a command line can list them without loading anything. */
export const READY_MODELS = ['mlp', 'convnet', 'transformer', 'gpt'] as const
