// The thread that brings tiles: it runs ahead of the consumers as far as there are empty places.
//
// Needs: pipeline.hpp, Tiles.

namespace tw_kernel {

class Producer {
 public:
  __forceinline__ Producer(const ForwardArguments& arguments, const TensorMaps& maps,
                           const SnippetArguments& call, const Shared& shared)
      : arguments_(arguments), maps_(maps), call_(call), shared_(shared) {}

  __forceinline__ void run() {
    prefetch_map(maps_.q);
    prefetch_map(maps_.k);
    prefetch_map(maps_.v);
#pragma unroll 1
    for (Schedule schedule(arguments_, call_); !schedule.done(); schedule.advance()) {
      bring(find_place(arguments_, call_, schedule.number()));
      q_.advance();
    }
  }

 private:
  __forceinline__ void bring(const Place& place) {
    // The block mask's last q block may reach beyond q_len.
    const bool has_rows = place.first_row < call_.q_len;
    const bool has_all_rows = place.first_row + kQTile <= call_.q_len;
    Tiles tiles(arguments_.mask, place, call_.kv_len);
    const int count = has_rows ? tiles.count() : 0;
    const Work work = {place, count, has_all_rows ? min(count, tiles.careful()) : count};
    if (count == 0) {
      announce(work);
      arrive(shared_address(&shared_.control->q_full[q_.q.stage]));
      return;
    }
    // A dimension that is broadcast has extent 1 in its map.
    const int k_b = arguments_.k.batch_stride == 0 ? 0 : place.b;
    const int k_h = arguments_.k.head_stride == 0 ? 0 : place.h_kv;
    const int v_b = arguments_.v.batch_stride == 0 ? 0 : place.b;
    const int v_h = arguments_.v.head_stride == 0 ? 0 : place.h_kv;
    KvTile tile = tiles.next();
    // K first: it finds an empty place before Q does.
    load_k(tile, k_b, k_h);
    announce(work);
    load_q(place);
#pragma unroll 1
    for (int i = 1; i < count; ++i) {
      const KvTile before = tile;
      tile = tiles.next();
      load_k(tile, k_b, k_h);
      load_v(before, v_b, v_h);
    }
    load_v(tile, v_b, v_h);
  }

  // Behind it there is an empty place for Q.
  __forceinline__ void announce(const Work& work) {
    Control& control = *shared_.control;
    wait(shared_address(&control.q_empty[q_.q.stage]), q_.q.parity ^ 1,
         "an empty place for Q, stage", q_.q.stage);
    control.work[q_.work.stage] = work;
  }

  __forceinline__ void load_q(const Place& place) {
    const unsigned full = shared_address(&shared_.control->q_full[q_.q.stage]);
    const int b = arguments_.q.batch_stride == 0 ? 0 : place.b;
    const int h = arguments_.q.head_stride == 0 ? 0 : place.h;
    arrive_and_expect(full, kConsumers * kHeadPanels * kBoxBytes);
#pragma unroll
    for (int consumer = 0; consumer < kConsumers; ++consumer) {
#pragma unroll
      for (int panel = 0; panel < kHeadPanels; ++panel) {
        load_box(shared_.q(q_.q.stage, consumer) + panel * kBoxBytes, maps_.q, full,
                 panel * kPanelColumns, place.first_row + consumer * 64, h, b);
      }
    }
  }

  __forceinline__ void load_k(const KvTile& tile, int b, int h) {
    Control& control = *shared_.control;
    wait(shared_address(&control.k_empty[k_.stage]), k_.parity ^ 1, "an empty place for K, stage",
         k_.stage);
    control.kv_tile[k_.stage] = tile;
    fill<kHeadPanels>(maps_.k, control.k_full[k_.stage], shared_.k(k_.stage), tile, b, h);
    k_.advance();
  }

  __forceinline__ void load_v(const KvTile& tile, int b, int h) {
    Control& control = *shared_.control;
    wait(shared_address(&control.v_empty[v_.stage]), v_.parity ^ 1, "an empty place for V, stage",
         v_.stage);
    fill<kValuePanels>(maps_.v, control.v_full[v_.stage], shared_.v(v_.stage), tile, b, h);
    v_.advance();
  }

  // Brings a tile of K or V into an empty place of its ring.
  template <int kPanels>
  __forceinline__ void fill(const TensorMap& map, unsigned long long& full_barrier, unsigned to,
                            const KvTile& tile, int b, int h) {
    const unsigned full = shared_address(&full_barrier);
    arrive_and_expect(full, kPanels * kPanelBytes);
#pragma unroll
    for (int panel = 0; panel < kPanels; ++panel) {
      load_box(to + panel * kPanelBytes, map, full, panel * kPanelColumns, tile.first(), h, b);
    }
  }

  const ForwardArguments& arguments_;
  const TensorMaps& maps_;
  const SnippetArguments& call_;
  const Shared shared_;
  QPlace q_;
  RingPlace k_;
  RingPlace v_;
};

}  // namespace tw_kernel
