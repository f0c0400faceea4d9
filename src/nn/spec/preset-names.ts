/** The models that need no file, apart from what makes them: a command line can list them without loading anything. */
export const PRESETS = ['mlp', 'convnet', 'transformer', 'gpt'] as const
