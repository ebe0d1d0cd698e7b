/*
 * Words are bytes:
 *   identity   key * 16 + generation of 4 bits                  key 0: nobody
 *   state      64 + owner of 3 bits * 8 + arrival time of 3     a token comes back in one unit of time
 *   mark       128 + key * 16 + generation of 4 bits
 *   0          never used
 */

#define IDENTITY(key, generation) ((key) * 16 + ((generation) & 15))
#define KEY_OF(identity) ((identity) / 16)
#define GENERATION_OF(word) ((word) & 15)

#define STATE(generation, arrival) (64 + ((generation) & 7) * 8 + (arrival))
#define WITH_ARRIVAL(word, arrival) (((word) & 120) + (arrival))
#define ARRIVAL_OF(word) ((word) & 7)
#define IS_STATE(word) ((word) >= 64 && (word) < 128)
#define RELEASED(generation) STATE(generation, 0)

#define MARK(key, generation) (128 + (key) * 16 + ((generation) & 15))
#define IS_MARK(word) ((word) >= 128)
#define MARK_KEY(word) (((word) - 128) / 16)

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define DEBT(arrival, at) ((arrival) > (at) -> (arrival) - (at) : 0)

#define LIVES(key, entry) (IS_STATE(state[entry]) && KEY_OF(identity[entry]) == (key))
#define ONCE(key) (!(LIVES(key, 0) && LIVES(key, 1)))

#define NOTHING 0
#define FREE 1
#define IDLE 2
#define MARKED 3
#define LIVE 4
#define RIVAL 5
