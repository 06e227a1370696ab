#include "picture/mask_picture.hpp"

#include "picture/mask_drawing.hpp"
#include "picture/png.hpp"
#include "picture/svg.hpp"

namespace tilewright::picture {

std::string svg_picture(const BlockMask& mask, const MaskPictureOptions& options) {
  const MaskDrawing drawing(mask, options);
  SvgCanvas canvas(drawing.width(), drawing.height(), options.title);
  drawing.draw(canvas);
  return canvas.finish();
}

std::vector<std::byte> png_picture(const BlockMask& mask, const MaskPictureOptions& options) {
  const MaskDrawing drawing(mask, options);
  PngCanvas canvas(drawing.width(), drawing.height());
  drawing.draw(canvas);
  return canvas.finish();
}

}  // namespace tilewright::picture
